//! Lua, functions, transactions and pipelines, as people's own programs use them.

use redis::Value;

use crate::harness::{Server, array, error, found, int, ints, items, ok, version};
use crate::{needs, run};

#[test]
fn a_pipeline_of_10_000_adds() {
    let server = Server::new();
    let mut c = server.client();
    let items = items(0..10_000);
    let adds: Vec<redis::Cmd> = items.iter().map(|item| redis::cmd("BF.ADD").arg("k").arg(item).to_owned()).collect();
    let new: i64 = c.pipeline(&adds).into_iter().map(int).sum();
    assert!((9_900..=10_000).contains(&new), "{new} of 10,000 were new");
    assert_eq!(found(&mut c, "k", &items), 10_000);
}

#[test]
fn transactions() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "MULTI"));
    for call in
        [&["BF.RESERVE", "k", "1e-9", "2", "NONSCALING"][..], &["BF.MADD", "k", "a", "b"], &["BF.ADD", "k", "c"]]
    {
        assert_eq!(run!(c, call), Value::SimpleString("QUEUED".into()));
    }
    let replies = array(run!(c, "EXEC"));
    assert_eq!(replies[0], Value::Okay);
    assert_eq!(ints(replies[1].clone()), [1, 1]);
    assert!(error(replies[2].clone()).starts_with("ERR non scaling filter is full"));
    ok(run!(c, "MULTI"));
    run!(c, "BF.ADD", "other", "a");
    ok(run!(c, "DISCARD"));
    assert_eq!(int(run!(c, "EXISTS", "other")), 0);
}

#[test]
fn eval_with_the_item_as_argument_and_as_key() {
    let server = Server::new();
    let mut c = server.client();
    let add = "return redis.call('BF.ADD', KEYS[1], ARGV[1])";
    assert_eq!(int(run!(c, "EVAL", add, 1, "k", "x")), 1);
    assert_eq!(int(run!(c, "EVAL", add, 1, "k", "x")), 0);
    // As many articles write it.
    let exists = "return redis.call('bf.exists', KEYS[1], KEYS[2])";
    assert_eq!(int(run!(c, "EVAL", exists, 2, "k", "x")), 1);
    assert_eq!(int(run!(c, "EVAL", exists, 2, "k", "y")), 0);
    let add = "return redis.call('bf.add', KEYS[1], KEYS[2])";
    assert_eq!(int(run!(c, "EVAL", add, 2, "k", "y")), 1);
    let both = "local r = redis.call('BF.MADD', KEYS[1], ARGV[1], ARGV[2]); return r[1] * 10 + r[2]";
    assert_eq!(int(run!(c, "EVAL", both, 1, "k", "x", "z")), 1);
    // Replies are numbers there, so 0 is as true as 1 in Lua; scripts compare.
    let compare = "if redis.call('BF.EXISTS', KEYS[1], ARGV[1]) == 1 then return 'yes' else return 'no' end";
    assert_eq!(run!(c, "EVAL", compare, 1, "k", "z"), Value::BulkString(b"yes".to_vec()));
    assert_eq!(run!(c, "EVAL", compare, 1, "k", "unknown"), Value::BulkString(b"no".to_vec()));
    let cached: String = String::from_utf8(crate::harness::bytes(run!(c, "SCRIPT", "LOAD", exists))).expect("a hash");
    assert_eq!(int(run!(c, "EVALSHA", cached, 2, "k", "x")), 1);
}

#[test]
fn errors_in_scripts_can_be_caught() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 1, "NONSCALING"));
    run!(c, "BF.ADD", "k", "a");
    let script = "local r = redis.pcall('BF.ADD', KEYS[1], 'b'); return r.err";
    let text = String::from_utf8(crate::harness::bytes(run!(c, "EVAL", script, 1, "k"))).expect("text");
    assert!(text.contains("non scaling filter is full"), "{text}");
    let uncaught = "return redis.call('BF.ADD', KEYS[1], 'b')";
    assert!(error(run!(c, "EVAL", uncaught, 1, "k")).contains("non scaling filter is full"));
    let script = "local r = redis.call('BF.MADD', KEYS[1], 'a', 'b'); return {r[1], type(r[2]), r[2].err}";
    let reply = run!(c, "EVAL", script, 1, "k");
    if version().valkey {
        // There an error within an array, too, ends a script that did not use pcall.
        assert!(error(reply).contains("non scaling filter is full"));
        return;
    }
    let reply = array(reply);
    assert_eq!(reply[0], Value::Int(0));
    assert_eq!(reply[1], Value::BulkString(b"table".to_vec()));
}

#[test]
fn scripts_that_ask_for_resp3_get_booleans() {
    needs!(version().has(7, 0), "RESP3 replies of modules, of 7.0");
    let server = Server::new();
    let mut c = server.client3();
    let script = "redis.setresp(3); return type(redis.call('BF.ADD', KEYS[1], 'a'))";
    assert_eq!(run!(c, "EVAL", script, 1, "k"), Value::BulkString(b"boolean".to_vec()));
    let script = "redis.setresp(3); return redis.call('BF.EXISTS', KEYS[1], 'a')";
    assert_eq!(run!(c, "EVAL", script, 1, "k"), Value::Boolean(true));
}

#[test]
fn read_only_scripts_ask_and_do_not_add() {
    needs!(version().has(7, 0), "EVAL_RO, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "x");
    assert_eq!(int(run!(c, "EVAL_RO", "return redis.call('BF.EXISTS', KEYS[1], ARGV[1])", 1, "k", "x")), 1);
    assert_eq!(int(run!(c, "EVAL_RO", "return redis.call('BF.EXISTS', KEYS[1], KEYS[2])", 2, "k", "y")), 0);
    assert_eq!(ints(run!(c, "EVAL_RO", "return redis.call('BF.MEXISTS', KEYS[1], 'x', 'y')", 1, "k")), [1, 0]);
    let refused = error(run!(c, "EVAL_RO", "return redis.call('BF.ADD', KEYS[1], 'y')", 1, "k"));
    assert!(refused.contains("Write commands are not allowed"), "{refused}");
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "y")), 0);
}

#[test]
fn functions_ask() {
    needs!(version().has(7, 0), "FUNCTION, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    let library = "#!lua name=seen\n\
        redis.register_function{function_name='seen', flags={'no-writes'}, \
        callback=function(keys, args) return redis.call('BF.EXISTS', keys[1], args[1]) end}\n\
        redis.register_function('see', function(keys, args) return redis.call('BF.ADD', keys[1], args[1]) end)";
    run!(c, "FUNCTION", "LOAD", library);
    assert_eq!(int(run!(c, "FCALL", "see", 1, "k", "x")), 1);
    assert_eq!(int(run!(c, "FCALL", "seen", 1, "k", "x")), 1);
    assert_eq!(int(run!(c, "FCALL_RO", "seen", 1, "k", "y")), 0);
}
