"""Every method of redis-py's r.bf(): redis_py.py PORT [PROTOCOL]

Without a protocol the client takes its own default. The answers are compared as Python does, where 1 == True, since the
client passes on what each protocol says.
"""

import sys

import redis
from redis.commands.bf.info import BFInfo

r = redis.Redis(port=int(sys.argv[1]), **({"protocol": int(sys.argv[2])} if sys.argv[2:] else {}))
bf = r.bf()


def refused(call, text):
    """The call must fail with an error that says this."""
    try:
        reply = call()
    except redis.ResponseError as error:
        assert text in str(error), (text, error)
    else:
        raise AssertionError(f"{reply!r} instead of an error that says {text!r}")


# create, which is also called reserve
assert bf.create("plain", 0.001, 1000) is True
assert bf.reserve("four", 1e-5, 1000, expansion=4) is True
assert bf.create("fixed", 0.001, 2, noScale=True) is True
refused(lambda: bf.create("plain", 0.001, 1000), "item exists")
refused(lambda: bf.create("both", 0.001, 1000, expansion=2, noScale=True), "exclude")
refused(lambda: bf.create("wrong", 1.5, 1000), "error rate")

# add, madd, exists, mexists
assert bf.add("plain", "a") == 1
assert bf.add("plain", "a") == 0
assert bf.madd("plain", "a", "b", b"\x00\xff") == [0, 1, 1]
assert bf.exists("plain", "b") == 1
assert bf.exists("plain", "z") == 0
assert bf.mexists("plain", "a", "z", b"\x00\xff") == [1, 0, 1]
assert bf.exists("missing", "a") == 0
r.set("text", "x")
refused(lambda: bf.exists("text", "a"), "wrong kind of value")

# A full filter: an error alone, or in the place of its item.
assert bf.madd("fixed", "a", "b") == [1, 1]
refused(lambda: bf.add("fixed", "c"), "non scaling filter is full")
old, new = bf.madd("fixed", "a", "c")
assert old == 0 and isinstance(new, redis.ResponseError), (old, new)

# insert, with all its options
assert bf.insert("made", ["a", "b", "a"], capacity=500, error=0.0001, expansion=3) == [1, 1, 0]
assert bf.insert("made", ["b", "c"], noCreate=True) == [0, 1]
assert bf.insert("single", ["a"], noScale=True) == [1]
refused(lambda: bf.insert("missing", ["a"], noCreate=True), "not found")

# info, card
def info_of(key):
    """Asked for RESP3, the client gives BF.INFO's reply as it came: a map, on Redis 6.2 a list."""
    reply = bf.info(key)
    return reply if isinstance(reply, BFInfo) else BFInfo(reply)


info = info_of("made")
assert (info.capacity, info.filterNum, info.insertedNum, info.expansionRate) == (500, 1, 3, 3), vars(info)
assert info.get("size") == info["size"] == info.size > 0
assert info_of("single").expansionRate is None
refused(lambda: bf.info("missing"), "not found")
assert bf.card("made") == 3
assert bf.card("missing") == 0

# scandump, loadchunk: the loop of the client's own documentation, over a filter of many records
items = [f"item{i}" for i in range(20_000)]
bf.create("large", 0.001, 5_000)
for start in range(0, len(items), 500):
    bf.madd("large", *items[start : start + 500])
chunks, iterator = [], 0
while True:
    iterator, data = bf.scandump("large", iterator)
    if iterator == 0:
        break
    chunks.append((iterator, data))
assert len(chunks) > 3
for iterator, data in chunks:
    bf.loadchunk("copy", iterator, data)
assert bf.card("copy") == bf.card("large")
assert all(bf.mexists("copy", *items))

# in a pipeline and a transaction
for transaction in False, True:
    with r.pipeline(transaction=transaction) as pipe:
        pipe.bf().create(f"piped{transaction}", 0.01, 100)
        pipe.bf().add(f"piped{transaction}", "a")
        pipe.bf().mexists(f"piped{transaction}", "a", "b")
        assert pipe.execute() == [True, 1, [1, 0]]
