//! A real server for each test: a process of its own, on a free port of 127.0.0.1, with a data directory of its own.
//!
//! ```ignore
//! let server = Server::new();                       // the module loaded, nothing saved unless a test says so
//! let mut c = server.client();                      // RESP2; client3() for RESP3
//! assert_eq!(int(run!(c, "BF.ADD", "k", "x")), 1);  // run! takes whatever crate redis takes as arguments
//! assert!(error(run!(c, "BF.ADD", "k")).contains("wrong number of arguments"));
//! ```
//!
//! `BLOOMGATE_SERVER` names the server's program (`redis-server` unless set), `BLOOMGATE_MODULE` the module (unless set,
//! the one that cargo built beside the test). A server ends with the value that started it, also when a test panics, and
//! with the thread that started it, also when the test runner is killed. A test that takes longer than its deadline
//! loses its server, with a message; one that hangs without it ends the whole run.

mod client;
pub mod cluster;
mod filters;
mod items;
mod random;
pub mod records;
mod scripts;
mod wire;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, io, thread};

use redis::{ProtocolVersion, Value};
use tempfile::TempDir;

pub use client::{Client, array, bytes, error, error_text, int, ints, ok, strings};
pub use filters::Filters;
pub use items::{add, found, items};
pub use random::Random;
pub use scripts::Language;
pub use wire::{Primary, Request, Stream, shown};

/// How long a test may use one server unless it says otherwise. The slowest test that does not takes a few seconds.
const TEST_DEADLINE: Duration = Duration::from_secs(60);
/// How long a server may take to answer its first PING, or to end when told to; the largest data set here loads in one.
const STEP_DEADLINE: Duration = Duration::from_secs(30);
/// What a test gets, after its server was taken from it, to fail by itself.
const GRACE: Duration = Duration::from_secs(15);
/// How often a condition of another process is looked at again.
const POLL: Duration = Duration::from_millis(5);
/// Another process may take the port between our finding it and the server's binding it.
const PORT_TRIES: usize = 10;

/// Sends one command and gives the reply, errors included, as a [`redis::Value`].
#[macro_export]
macro_rules! run {
    ($client:expr, $name:expr $(, $arg:expr)* $(,)?) => {
        $client.run(redis::Cmd::new().arg($name)$(.arg($arg))*)
    };
}

/// Ends the test, saying so on the terminal, where the server under test lacks what it is about. `make test-all` checks
/// that every test ran on some server.
#[macro_export]
macro_rules! needs {
    ($condition:expr, $what:expr) => {
        if !$condition {
            $crate::harness::skipped($what);
            return;
        }
    };
}

/// Tells the terminal, past libtest's capture, that this test did not run.
pub fn skipped(what: &str) {
    // `eprintln!` would be captured and, since the test then passes, never seen.
    let line = format!("SKIPPED: {}: needs {what}; this is {}\n", test_name(), version());
    io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
}

/// The server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Valkey rather than Redis.
    pub valkey: bool,
    /// major, minor, patch of the product itself (Valkey also announces itself as Redis 7.2.4).
    pub number: (u32, u32, u32),
}

impl Version {
    /// Whether the server offers what came with this release of Redis. Valkey began with everything of Redis 7.2 and has
    /// nothing of what Redis added later.
    pub fn has(self, major: u32, minor: u32) -> bool {
        let offers = if self.valkey { (7, 2) } else { (self.number.0, self.number.1) };
        offers >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.number;
        write!(f, "{} {major}.{minor}.{patch}", if self.valkey { "Valkey" } else { "Redis" })
    }
}

/// What `$BLOOMGATE_SERVER --version` says, asked once.
pub fn version() -> Version {
    static VERSION: LazyLock<Version> = LazyLock::new(|| {
        let program = program();
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .unwrap_or_else(|e| panic!("cannot run {}: {e}; set BLOOMGATE_SERVER", program.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // "Redis server v=7.0.15 sha=…" or "Valkey server v=9.1.2 sha=…"
        let number = text.split("v=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let mut parts = number.split('.').map(|part| part.parse().expect("a number in the server's version"));
        let mut part = || parts.next().unwrap_or_else(|| panic!("no version in {text:?}"));
        Version { valkey: text.starts_with("Valkey"), number: (part(), part(), part()) }
    });
    *VERSION
}

fn program() -> PathBuf {
    env::var_os("BLOOMGATE_SERVER").unwrap_or_else(|| "redis-server".into()).into()
}

/// The module under test: `$BLOOMGATE_MODULE`, or the library that cargo made for this test. Cargo builds the cdylib of
/// a package before its integration tests and its examples and leaves it in `deps/`; only `cargo build` links it from
/// the directory above as well.
pub fn module() -> PathBuf {
    if let Some(path) = env::var_os("BLOOMGATE_MODULE") {
        return path.into();
    }
    built("deps/libbloomgate.so")
}

/// A file below the directory of the profile (`target/debug`) that this test was built in.
pub fn built(file: &str) -> PathBuf {
    let executable = env::current_exe().expect("the path of this test");
    let profile = executable.parent().and_then(Path::parent).expect("cargo's target/<profile>/deps or /examples");
    let path = profile.join(file);
    assert!(path.exists(), "{} is missing: `cargo test` makes it", path.display());
    path
}

/// libtest names the thread after the test (with `--test-threads 1` it is "main").
fn test_name() -> String {
    thread::current().name().unwrap_or("unnamed test").to_owned()
}

/// How a server is started.
#[derive(Clone)]
pub struct Options {
    config: Vec<(String, String)>,
    modules: Vec<(PathBuf, String)>,
    deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The module without arguments; nothing is saved by itself; DEBUG works; replicas are served without delay.
    pub fn new() -> Self {
        let options = Self { config: Vec::new(), modules: vec![(module(), String::new())], deadline: TEST_DEADLINE };
        let options = options.config("save", "").config("repl-diskless-sync", "no");
        if version().has(7, 0) { options.config("enable-debug-command", "yes") } else { options }
    }

    /// A line of redis.conf; a later one for the same name counts.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.config.retain(|(known, _)| known != name);
        self.config.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Load arguments of the module under test.
    pub fn module_arguments(mut self, arguments: &str) -> Self {
        self.modules.last_mut().expect("the module under test is the last").1 = arguments.to_owned();
        self
    }

    /// Another module, loaded before the one under test.
    pub fn module_before(mut self, path: PathBuf, arguments: &str) -> Self {
        self.modules.insert(0, (path, arguments.to_owned()));
        self
    }

    /// The server alone.
    pub fn without_module(mut self) -> Self {
        self.modules.clear();
        self
    }

    /// For tests that rightly take longer than a minute.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// # Panics
    /// With the server's log, when it does not come up.
    #[track_caller]
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// # Errors
    /// The server's log, when the server ends instead of answering.
    pub fn try_start(self) -> Result<Server, String> {
        let directory = tempfile::Builder::new().prefix("bloomgate-").tempdir().expect("a temporary directory");
        let process = Arc::new(Mutex::new(None));
        let watchdog = watch(self.deadline, Arc::clone(&process));
        let mut server = Server { options: self, directory, process, port: 0, _watchdog: watchdog };
        server.try_start().map(|()| server)
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    options: Options,
    directory: TempDir,
    process: Arc<Mutex<Option<Child>>>,
    port: u16,
    /// Dropping it calls the watchdog off.
    _watchdog: Sender<()>,
}

impl Server {
    /// A server with [`Options::new`].
    pub fn new() -> Self {
        Options::new().start()
    }

    /// A server that has read this RDB file, which is copied: it is never written to.
    pub fn on_file(file: &Path) -> Self {
        let mut server = Self::new();
        server.kill();
        fs::copy(file, server.directory().join("dump.rdb")).expect("the file can be copied");
        server.start();
        server
    }

    /// A new RESP2 connection.
    pub fn client(&self) -> Client {
        Client::connect(self.port, ProtocolVersion::RESP2).unwrap_or_else(|e| panic!("cannot connect: {e}"))
    }

    /// A new RESP3 connection.
    pub fn client3(&self) -> Client {
        Client::connect(self.port, ProtocolVersion::RESP3).unwrap_or_else(|e| panic!("cannot connect: {e}"))
    }

    /// A connection that receives what a replica would, from now on.
    pub fn stream(&self) -> Stream {
        Stream::connect(self.port)
    }

    /// The port on 127.0.0.1; after each start the same, unless another process has taken it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// All that the server wrote to its log and to stderr, since its first start.
    pub fn log(&self) -> String {
        fs::read(self.log_path()).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// What the AOF holds as commands: all of it, or what follows an RDB base.
    pub fn aof(&self) -> Vec<Request> {
        wire::read_aof(self.directory())
    }

    /// The file that commands are written to now, on a server with an AOF.
    pub fn aof_file(&self) -> PathBuf {
        wire::aof_files(self.directory()).pop().expect("an AOF")
    }

    /// Starts it again on the same data, after [`stop`](Self::stop) or [`kill`](Self::kill).
    #[track_caller]
    pub fn start(&mut self) {
        self.try_start().unwrap_or_else(|log| panic!("the server did not start:\n{log}"));
    }

    /// # Errors
    /// The server's log, when the server ends instead of answering, as for a file that it cannot load.
    pub fn try_start(&mut self) -> Result<(), String> {
        for tried in 0..PORT_TRIES {
            let before = self.log().len();
            if self.port == 0 || tried > 0 {
                self.port = free_port();
            }
            let child = self.spawn();
            let pid = child.id();
            *lock(&self.process) = Some(child);
            if self.answers(pid) {
                return Ok(());
            }
            let log = self.log().split_off(before);
            if !log.contains("Failed listening on port") && !log.contains("Address already in use") {
                return Err(log);
            }
        }
        panic!("no free port in {PORT_TRIES} tries:\n{}", self.log());
    }

    /// Starts it and ends it with SIGKILL after this time, whether it answers by then or not.
    pub fn start_and_kill(&mut self, after: Duration) {
        *lock(&self.process) = Some(self.spawn());
        thread::sleep(after);
        self.kill();
    }

    /// A line of redis.conf for the next start.
    pub fn configure(&mut self, name: &str, value: &str) {
        self.options = self.options.clone().config(name, value);
    }

    /// Load arguments of the module for the next start.
    pub fn module_arguments(&mut self, arguments: &str) {
        self.options = self.options.clone().module_arguments(arguments);
    }

    /// SHUTDOWN SAVE.
    pub fn stop(&mut self) {
        // No reply comes when it works; when it does not, what comes is the reason.
        let reply = self.client().try_run(redis::cmd("SHUTDOWN").arg("SAVE"));
        assert!(reply.is_err(), "SHUTDOWN was answered {reply:?}");
        self.until("the server has ended", || !self.alive());
        lock(&self.process).take();
    }

    /// SHUTDOWN SAVE and start again.
    pub fn restart(&mut self) {
        self.stop();
        self.start();
    }

    /// SIGKILL: what a crash or a power cut leaves.
    pub fn kill(&mut self) {
        if let Some(mut child) = lock(&self.process).take() {
            child.kill().expect("a child of ours can be killed");
            child.wait().expect("a child of ours can be waited for");
        }
    }

    /// Makes this one a replica and waits until it has all that `primary` has.
    pub fn follow(&self, primary: &Server) {
        ok(run!(self.client(), "REPLICAOF", "127.0.0.1", primary.port));
        self.catch_up(primary);
    }

    /// Waits until this replica has all that was written on `primary` before.
    pub fn catch_up(&self, primary: &Server) {
        let (mut client, mut upstream) = (self.client(), primary.client());
        let target: u64 = upstream.info("master_repl_offset").parse().expect("an offset");
        // A replica notices late that its primary was started anew; the primary knows.
        let online = format!("port={},state=online", self.port);
        self.until("the replica has what its primary has", || {
            let info = client.info_all();
            info["master_link_status"] == "up"
                && info["slave_repl_offset"].parse::<u64>().is_ok_and(|o| o >= target)
                && upstream.info_all().values().any(|text| text.contains(&online))
        });
    }

    /// Waits for a condition, looking at it every few milliseconds.
    ///
    /// # Panics
    /// After half a minute, saying what it waited for.
    #[track_caller]
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + STEP_DEADLINE;
        while !condition() {
            assert!(Instant::now() < end, "waited {STEP_DEADLINE:?} in vain until {what}");
            thread::sleep(POLL);
        }
    }

    /// Whether the process runs; false after a crash.
    pub fn alive(&self) -> bool {
        match lock(&self.process).as_mut() {
            Some(child) => child.try_wait().expect("a child of ours can be waited for").is_none(),
            None => false,
        }
    }

    fn log_path(&self) -> PathBuf {
        self.directory().join("server.log")
    }

    fn spawn(&self) -> Child {
        let config = self.directory().join("redis.conf");
        let mut file = File::create(&config).expect("the configuration can be written");
        let mut line = |text: String| writeln!(file, "{text}").expect("the configuration can be written");
        line(format!("bind 127.0.0.1\nport {}\ndir \"{}\"", self.port, self.directory().display()));
        for (name, value) in &self.options.config {
            // `save` is the one name whose empty value must be quoted, and whose value of two words must not be.
            line(if value.is_empty() { format!("{name} \"\"") } else { format!("{name} {value}") });
        }
        for (path, arguments) in &self.options.modules {
            line(format!("loadmodule {} {arguments}", path.display()));
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).expect("the log can be opened");
        let errors = log.try_clone().expect("a second handle on the log");
        let mut command = Command::new(program());
        command.arg(&config).stdin(Stdio::null()).stdout(log).stderr(errors);
        // SAFETY: between fork and exec only prctl is called, which is a bare system call: it takes no lock and
        // allocates nothing.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        command.spawn().unwrap_or_else(|e| panic!("cannot run {}: {e}", program().display()))
    }

    /// Waits for the first PONG of this very process; false if it ended first.
    fn answers(&self, pid: u32) -> bool {
        let end = Instant::now() + STEP_DEADLINE;
        while self.alive() {
            // While it loads, it answers PING with an error. Another server may hold the port: then ours ends.
            if let Ok(mut client) = Client::connect(self.port, ProtocolVersion::RESP2)
                && let Ok(Value::SimpleString(_)) = client.try_run(&redis::cmd("PING"))
                && client.info("process_id") == pid.to_string()
            {
                return true;
            }
            assert!(Instant::now() < end, "no PONG within {STEP_DEADLINE:?}:\n{}", self.log());
            thread::sleep(POLL);
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of the server on port {} ({})\n{}", self.port, version(), self.log());
        }
        self.kill();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("the address of a bound socket").port()
}

/// A child is whole whatever the thread that held the lock did, so a poisoned lock is as good as any.
fn lock(process: &Mutex<Option<Child>>) -> MutexGuard<'_, Option<Child>> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the server when its test takes too long, so that the test's next read fails, and the run when even that does
/// not help. Dropping the sender calls it off.
fn watch(deadline: Duration, process: Arc<Mutex<Option<Child>>>) -> Sender<()> {
    let (sender, receiver) = mpsc::channel();
    let test = test_name();
    let tell = move |what: &str| {
        let line = format!("DEADLINE: {test}: took longer than {deadline:?}: {what}\n");
        io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
    };
    thread::spawn(move || {
        if receiver.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            tell("its server is killed");
            if let Some(child) = lock(&process).as_mut() {
                child.kill().expect("a child of ours can be killed");
            }
            if receiver.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                tell("it hangs, the test run ends here");
                std::process::exit(1);
            }
        }
    });
    sender
}
