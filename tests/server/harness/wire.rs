//! What a server writes for others: its replication stream and its AOF, as the requests in them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use redis::{Parser, Value};

use super::records;

/// The words of one command.
pub type Request = Vec<Vec<u8>>;

/// No write of a test is later than this in the stream.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The key by which [`Stream::until_now`] finds the end.
const MARK: &str = "mark-in-the-stream";

/// A connection that the server takes for a replica's.
pub struct Stream {
    reader: BufReader<TcpStream>,
    parser: Parser,
}

impl Stream {
    pub(super) fn connect(port: u16) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        socket.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout can be set");
        socket.write_all(b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n").expect("the server reads");
        let mut stream = Self { reader: BufReader::new(socket), parser: Parser::new() };
        let line = stream.line();
        assert!(line.starts_with("+FULLRESYNC "), "PSYNC was answered {line:?}");
        // The RDB file: its length, then its bytes and nothing after them. (A replica that announces `capa eof` may
        // get another form.)
        let line = stream.line();
        let length = line.strip_prefix('$').and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
        let mut file = vec![0; length];
        stream.reader.read_exact(&mut file).expect("the whole RDB file");
        assert!(is_rdb(&file), "not an RDB file: {}", file.escape_ascii());
        stream
    }

    /// A line; empty ones keep the connection alive while the primary saves.
    fn line(&mut self) -> String {
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            assert!(self.reader.read_line(&mut line).expect("a line of the primary") > 0, "the primary hung up");
        }
        line.trim().to_owned()
    }

    /// What was sent to replicas since the last call, but for what belongs to the connection and to transactions. Takes a
    /// client, to write a mark that ends it.
    pub fn until_now(&mut self, client: &mut super::Client) -> Vec<Request> {
        super::ok(crate::run!(client, "SET", MARK, ""));
        let mut requests = Vec::new();
        loop {
            let value = self.parser.parse_value(&mut self.reader).expect("a command in the stream");
            let request = request(value);
            if request.get(1).is_some_and(|key| key == MARK.as_bytes()) {
                return requests;
            }
            if !is_frame(&request) {
                requests.push(request);
            }
        }
    }

    /// As [`Stream::until_now`], a line for each request.
    pub fn shown(&mut self, server: &super::Server) -> Vec<String> {
        super::shown(&self.until_now(&mut server.client()))
    }
}

/// A primary that is none: it serves one replica with an RDB file and then these commands.
pub struct Primary {
    port: u16,
}

impl Primary {
    pub fn serve(rdb: Vec<u8>, commands: &[&redis::Cmd]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a bound socket").port();
        let commands: Vec<u8> = commands.iter().flat_map(|command| command.get_packed_command()).collect();
        // It ends with the replica's connection.
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a replica");
            let mut reader = BufReader::new(socket.try_clone().expect("a second handle on the socket"));
            let mut parser = Parser::new();
            while let Ok(value) = parser.parse_value(&mut reader) {
                let reply = match request(value)[0].to_ascii_uppercase().as_slice() {
                    b"PING" => b"+PONG\r\n".to_vec(),
                    b"PSYNC" => {
                        let mut reply = format!("+FULLRESYNC {} 0\r\n${}\r\n", "a".repeat(40), rdb.len()).into_bytes();
                        reply.extend(&rdb);
                        reply.extend(&commands);
                        reply
                    }
                    _ => b"+OK\r\n".to_vec(),
                };
                socket.write_all(&reply).expect("the replica reads");
            }
        });
        Self { port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Commands that say how, not what, is changed.
fn is_frame(request: &Request) -> bool {
    let frames = [b"SELECT".as_slice(), b"PING", b"REPLCONF", b"MULTI", b"EXEC"];
    frames.iter().any(|name| request[0].eq_ignore_ascii_case(name))
}

fn is_rdb(file: &[u8]) -> bool {
    file.starts_with(b"REDIS") || file.starts_with(b"VALKEY")
}

fn request(value: Value) -> Request {
    super::client::array(value).into_iter().map(super::bytes).collect()
}

/// The AOF of a data directory: from 7.0 on the base and the increments, in this order; before, the one file.
pub fn aof_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = match fs::read_dir(directory.join("appendonlydir")) {
        Ok(entries) => entries.map(|entry| entry.expect("a directory entry").path()).collect(),
        Err(_) => vec![directory.join("appendonly.aof")],
    };
    files.retain(|path| path.extension().is_some_and(|extension| extension == "aof"));
    // appendonly.aof.2.base.aof comes before appendonly.aof.2.incr.aof; there are never ten of them here.
    files.sort();
    files
}

/// The commands in the AOF of a data directory, but for such as MULTI.
pub fn read_aof(directory: &Path) -> Vec<Request> {
    let mut requests = Vec::new();
    for file in aof_files(directory) {
        let content = fs::read(&file).expect("the AOF can be read");
        assert!(!is_rdb(&content), "{} begins with an RDB file: look at it before", file.display());
        let (mut rest, mut parser, mut read) = (content.as_slice(), Parser::new(), 0);
        // The parser reads ahead, so what is left of `rest` does not say where it is.
        while read < content.len() {
            let request = request(parser.parse_value(&mut rest).expect("a command in the AOF"));
            read += redis::Cmd::new().arg(&request).get_packed_command().len();
            requests.push(request);
        }
    }
    requests.retain(|request| !is_frame(request));
    requests
}

/// Requests as text, one line each: records are named by kind, `BF.LOADCHUNK k 1 <filter layer bits end>`.
pub fn shown(requests: &[Request]) -> Vec<String> {
    let word = |word: &Vec<u8>| records::kinds(word).unwrap_or_else(|| word.escape_ascii().to_string());
    requests.iter().map(|request| request.iter().map(word).collect::<Vec<_>>().join(" ")).collect()
}
