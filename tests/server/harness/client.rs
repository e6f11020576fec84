//! A connection through crate `redis`, and what tests want to know about a reply.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Cmd, Connection, ConnectionLike, IntoConnectionInfo, ProtocolVersion, RedisResult, ServerError, Value};

/// Longer than any test: the watchdog ends a test's server, and with it every read, much earlier.
const READ_TIMEOUT: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection.
pub struct Client(Connection);

impl Client {
    /// # Errors
    /// Where nobody listens.
    pub fn connect(port: u16, protocol: ProtocolVersion) -> RedisResult<Self> {
        let info = ("127.0.0.1", port).into_connection_info()?;
        // Without the CLIENT SETINFO that it would send, what a test sends is all that the server sees.
        let settings = info.redis_settings().clone().set_protocol(protocol).set_skip_set_lib_name();
        let client = redis::Client::open(info.set_redis_settings(settings))?;
        let connection = client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self(connection))
    }

    /// The reply to one command, errors included. Usually called through [`run!`](crate::run).
    #[track_caller]
    pub fn run(&mut self, command: &Cmd) -> Value {
        self.try_run(command).unwrap_or_else(|e| panic!("no reply to {}: {e}", shown(command)))
    }

    /// # Errors
    /// Where no reply came.
    pub fn try_run(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.0.req_packed_command(&command.get_packed_command())
    }

    /// The replies to commands that are all sent before the first reply is read.
    #[track_caller]
    pub fn pipeline<'a>(&mut self, commands: impl IntoIterator<Item = &'a Cmd>) -> Vec<Value> {
        let (mut packed, mut count) = (Vec::new(), 0);
        for command in commands {
            packed.extend(command.get_packed_command());
            count += 1;
        }
        self.0.req_packed_commands(&packed, 0, count).unwrap_or_else(|e| panic!("no replies to a pipeline: {e}"))
    }

    /// What crate `redis` makes of the connection, for subscriptions.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.0
    }

    /// One field of INFO.
    #[track_caller]
    pub fn info(&mut self, field: &str) -> String {
        self.info_all().remove(field).unwrap_or_else(|| panic!("no {field} in INFO"))
    }

    /// All fields of INFO.
    pub fn info_all(&mut self) -> HashMap<String, String> {
        let text = String::from_utf8(bytes(crate::run!(self, "INFO"))).expect("INFO is text");
        text.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    /// What DEBUG DIGEST-VALUE says of a key: equal for equal content, on whatever server.
    #[track_caller]
    pub fn digest(&mut self, key: &str) -> String {
        strings(crate::run!(self, "DEBUG", "DIGEST-VALUE", key)).remove(0)
    }

    /// Changes since the last save, as the server counts them.
    #[track_caller]
    pub fn changes(&mut self) -> u64 {
        self.info("rdb_changes_since_last_save").parse().expect("a number of changes")
    }
}

fn shown(command: &Cmd) -> String {
    let text = String::from_utf8_lossy(&command.get_packed_command()).replace("\r\n", " ");
    text.chars().take(200).collect()
}

/// Asserts that the reply is OK.
#[track_caller]
pub fn ok(reply: Value) {
    assert_eq!(reply, Value::Okay);
}

/// An integer, or the boolean that stands for it in RESP3.
#[track_caller]
pub fn int(reply: Value) -> i64 {
    match reply {
        Value::Int(number) => number,
        Value::Boolean(truth) => i64::from(truth),
        other => panic!("not an integer: {other:?}"),
    }
}

/// An array of such.
#[track_caller]
pub fn ints(reply: Value) -> Vec<i64> {
    array(reply).into_iter().map(int).collect()
}

/// A bulk or simple string.
#[track_caller]
pub fn bytes(reply: Value) -> Vec<u8> {
    match reply {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.into_bytes(),
        other => panic!("not a string: {other:?}"),
    }
}

/// An array of strings.
#[track_caller]
pub fn strings(reply: Value) -> Vec<String> {
    array(reply).into_iter().map(|s| String::from_utf8_lossy(&bytes(s)).into_owned()).collect()
}

/// An error, as the server wrote it: code, a space, text.
#[track_caller]
pub fn error(reply: Value) -> String {
    match reply {
        Value::ServerError(e) => error_text(&e),
        other => panic!("not an error: {other:?}"),
    }
}

/// An error as the server wrote it: code, a space, text.
pub fn error_text(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}

/// An array, its elements as they are.
#[track_caller]
pub fn array(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(elements) => elements,
        other => panic!("not an array: {other:?}"),
    }
}
