#!/bin/sh
# Every BF command through redis-cli: redis_cli.sh PORT
set -eu

port=$1
cli() { redis-cli -p "$port" "$@"; }

# expect WANTED WORD...: the command's reply, as redis-cli prints it for people.
expect() {
    wanted=$1
    shift
    reply=$(cli --no-raw "$@")
    [ "$reply" = "$wanted" ] || { echo "$*: '$reply' instead of '$wanted'" >&2; exit 1; }
}

expect OK BF.RESERVE k 0.001 1000
expect '(error) ERR item exists' BF.RESERVE k 0.001 1000
expect '(integer) 1' BF.ADD k a
expect '(integer) 0' BF.ADD k a
expect '1) (integer) 0
2) (integer) 1' BF.MADD k a b
expect '1) (integer) 1' BF.INSERT other CAPACITY 500 ERROR 0.01 EXPANSION 3 ITEMS a
expect '(error) ERR not found' BF.INSERT missing NOCREATE ITEMS a
expect '(integer) 1' BF.EXISTS k b
expect '1) (integer) 1
2) (integer) 0' BF.MEXISTS k a z
expect '1) (integer) 1000' BF.INFO k CAPACITY
expect '1) (integer) 3' BF.INFO other EXPANSION
expect '(integer) 2' BF.CARD k

# A dump goes through files, since a shell's variable holds no NUL. redis-cli prints the iterator, the data and, at the
# end, a line feed of its own.
iterator=0
while
    cli --raw BF.SCANDUMP k "$iterator" >reply
    iterator=$(head -n 1 reply)
    [ "$iterator" != 0 ]
do
    tail -n +2 reply | head -c -1 >data
    [ "$(cli -x BF.LOADCHUNK copy "$iterator" <data)" = OK ]
done
expect '1) (integer) 1
2) (integer) 1
3) (integer) 0' BF.MEXISTS copy a b z
expect '(integer) 2' BF.CARD copy
