//! One redis-server on a free port of this machine, with one module, in a directory of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, ToRedisArgs};
use tempfile::TempDir;

use crate::Result;

/// How long a server may take until it answers, which includes reading a file of a large filter.
const START_DEADLINE: Duration = Duration::from_secs(600);
/// Between two looks at something that a server does by itself. It bounds what our times of such things are worth.
const POLL: Duration = Duration::from_millis(2);

/// A running server; it ends when this is dropped.
pub struct Server {
    program: PathBuf,
    module: PathBuf,
    process: Process,
    port: u16,
    directory: TempDir,
    admin: Connection,
    /// From starting the process to its first answer.
    pub ready_after: Duration,
}

impl Server {
    /// Starts `program` with `module`, without persistence, and waits until it answers.
    pub fn start(program: &Path, module: &Path) -> Result<Self> {
        Self::start_in(program, module, tempfile::Builder::new().prefix("bloomgate-bench").tempdir()?)
    }

    /// Ends this server and starts it again on its directory, where it finds the file it had saved.
    pub fn restart(self) -> Result<Self> {
        let Self { program, module, process, directory, .. } = self;
        drop(process);
        Self::start_in(&program, &module, directory)
    }

    fn start_in(program: &Path, module: &Path, directory: TempDir) -> Result<Self> {
        // Another process may take the port between the two lines; the server then ends and the run with it.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let module = fs::canonicalize(module).map_err(|error| format!("{}: {error}", module.display()))?;
        let begun = Instant::now();
        let process = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--logfile", "server.log", "--dir"])
            .arg(directory.path())
            .arg("--loadmodule")
            .arg(&module)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut process = Process(process);
        let admin = first_answer(&mut process.0, port, begun + START_DEADLINE).map_err(|error| {
            let log = fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
            format!("a server with {} did not start: {error}\n{log}", module.display())
        })?;
        let ready_after = begun.elapsed();
        Ok(Self { program: program.to_owned(), module, process, port, directory, admin, ready_after })
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs one command and gives its reply.
    pub fn ask<T: FromRedisValue>(&mut self, command: &str, arguments: &[impl ToRedisArgs]) -> Result<T> {
        Ok(redis::cmd(command).arg(arguments).query(&mut self.admin)?)
    }

    /// One field of INFO, as text.
    pub fn info(&mut self, section: &str, field: &str) -> Result<String> {
        let text: String = self.ask("INFO", &[section])?;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(value.ok_or_else(|| format!("INFO {section} of this server has no {field}"))?.to_owned())
    }

    /// Processor time that the main thread has used since the start (the whole process, where the server does not tell them apart).
    pub fn processor_time(&mut self) -> Result<Duration> {
        let text: String = self.ask("INFO", &["cpu"])?;
        let seconds = |field: &str| -> Option<f64> {
            text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.parse().ok())
        };
        let of_thread = || Some(seconds("used_cpu_user_main_thread")? + seconds("used_cpu_sys_main_thread")?);
        let of_process = || Some(seconds("used_cpu_user")? + seconds("used_cpu_sys")?);
        let used = of_thread().or_else(of_process).ok_or("INFO cpu has no processor time")?;
        Ok(Duration::from_secs_f64(used))
    }

    /// Saves in the background and waits until that is done.
    pub fn background_save(&mut self) -> Result<Saved> {
        let begun = Instant::now();
        let () = self.ask("BGSAVE", &[] as &[&str])?;
        let child = self.saving_child();
        let mut child_peak = 0;
        while self.info("persistence", "rdb_bgsave_in_progress")? != "0" {
            if let Some(child) = child {
                child_peak = peak_memory(child).unwrap_or(child_peak);
            }
            sleep(POLL);
        }
        let time = begun.elapsed();
        if self.info("persistence", "rdb_last_bgsave_status")? != "ok" {
            return Err("the background save failed".into());
        }
        Ok(Saved {
            time,
            child_peak,
            not_shared: self.info("persistence", "rdb_last_cow_size")?.parse()?,
            fork: Duration::from_micros(self.info("stats", "latest_fork_usec")?.parse()?),
            file: fs::metadata(self.directory.path().join("dump.rdb"))?.len(),
        })
    }

    /// The process that a background save runs in: the log is the only place where every server names it.
    fn saving_child(&self) -> Option<u32> {
        let log = fs::read_to_string(self.directory.path().join("server.log")).ok()?;
        log.rsplit("Background saving started by pid ").next()?.split_whitespace().next()?.parse().ok()
    }

    /// The largest resident size that the server had so far, in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        Ok(peak_memory(self.process.0.id()).ok_or("the kernel does not say how much memory the server uses")?)
    }
}

/// What a background save took.
pub struct Saved {
    /// Until the server reported its end.
    pub time: Duration,
    /// The child's largest resident size in bytes, the pages it shares with its parent included.
    pub child_peak: u64,
    /// Bytes that parent and child no longer shared at the end.
    pub not_shared: u64,
    /// How long the server stood still for the fork.
    pub fork: Duration,
    /// Bytes of the file.
    pub file: u64,
}

/// A process that ends when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects as soon as the server answers PING, which it refuses while it reads its file.
fn first_answer(process: &mut Child, port: u16, deadline: Instant) -> Result<Connection> {
    let client = redis::Client::open((Ipv4Addr::LOCALHOST.to_string(), port))?;
    loop {
        let answer = client.get_connection().and_then(|mut connection| {
            let () = redis::cmd("PING").query(&mut connection)?;
            Ok(connection)
        });
        match answer {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => sleep(POLL),
        }
        if let Some(status) = process.try_wait()? {
            return Err(format!("it ended ({status})").into());
        }
    }
}

/// VmHWM of a process, in bytes.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}
