//! What the pages for users show is run as it stands there.
//!
//! A page's code blocks run on a server of their own for each section. A section's blocks in one language are one
//! program. In blocks marked `console`, lines that begin with `> ` are commands and the others what redis-cli prints.

use std::fmt::Write;
use std::process::Command;

use redis::{Connection, RedisResult, TypedCommands};

use crate::harness::{Language, Server};
use crate::needs;

const PAGES: [(&str, &str); 3] = [
    ("recipes", include_str!("../../docs/recipes.md")),
    ("clients", include_str!("../../docs/clients.md")),
    ("operators", include_str!("../../docs/operators.md")),
];

/// The program of one section in one language.
pub struct Program {
    pub section: String,
    pub text: String,
}

/// The programs of all pages in a language, as the blocks are marked with it.
fn programs(mark: &str) -> Vec<Program> {
    programs_of(&PAGES, mark)
}

/// The same of these pages, each with its name.
pub fn programs_of(pages: &[(&str, &str)], mark: &str) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for &(page, text) in pages {
        let (mut section, mut block) = (page.to_owned(), None);
        for line in text.lines() {
            if let Some(fence) = line.strip_prefix("```") {
                block = if block.is_none() { Some(fence) } else { None };
            } else if block.is_none() && line.starts_with("## ") {
                section = format!("{page}, {line}");
            } else if block == Some(mark) {
                if programs.last().is_none_or(|program| program.section != section) {
                    programs.push(Program { section: section.clone(), text: String::new() });
                }
                let program = programs.last_mut().expect("it was just made");
                writeln!(program.text, "{line}").expect("a string takes everything");
            }
        }
        assert_eq!(block, None, "{page}: a block has no end");
    }
    assert!(!programs.is_empty(), "no page has a block marked {mark}");
    programs
}

/// Runs all programs in a language, each on a server of its own, whose port stands there for the usual one.
fn run_all(language: Language, mark: &str, file: &str) {
    for Program { section, text } in programs(mark) {
        println!("{section}");
        let server = Server::new();
        let port = server.port().to_string();
        let text = text.replace("6379", &port).replace("redis-cli ", &format!("redis-cli -p {port} "));
        language.run(file, &text, &[]);
    }
}

#[test]
fn python() {
    needs!(Language::Python.is_there(), Language::Python.needs());
    run_all(Language::Python, "python", "example.py");
}

#[test]
fn node() {
    needs!(Language::Node.is_there(), Language::Node.needs());
    run_all(Language::Node, "js", "example.mjs");
}

#[test]
fn shell() {
    needs!(Language::Shell.is_there(), Language::Shell.needs());
    run_all(Language::Shell, "sh", "example.sh");
}

#[test]
fn console() {
    needs!(Language::Shell.is_there(), Language::Shell.needs());
    for Program { section, text } in programs("console") {
        let server = Server::new();
        let mut wanted: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            match (line.strip_prefix("> "), wanted.last_mut()) {
                (Some(command), _) => wanted.push((command, String::new())),
                (None, Some((_, reply))) => writeln!(reply, "{line}").expect("a string takes everything"),
                (None, None) => panic!("{section}: a reply to nothing: {line}"),
            }
        }
        for (command, reply) in wanted {
            assert_eq!(redis_cli(&server, command), reply, "{section}: {command}");
        }
    }
}

/// What redis-cli prints for people. Its own parser reads the command's quotes.
fn redis_cli(server: &Server, command: &str) -> String {
    let port = server.port().to_string();
    let script = "printf '%s\\n' \"$1\" | redis-cli --no-raw -p \"$0\"";
    let run = Command::new("sh").args(["-c", script, &port, command]).output().expect("sh runs");
    assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("text")
}

#[test]
fn rust() {
    let [Program { text, .. }] = &programs("rust")[..] else { panic!("one example for the crate redis") };
    assert!(include_str!("documents.rs").contains(text.as_str()), "the page's example is not the one below:\n{text}");
    let server = Server::new();
    seen(server.client().connection()).expect("the example works");
}

fn seen(connection: &mut Connection) -> RedisResult<()> {
    connection.bf_reserve("seen", 0.001, 1_000_000)?;
    assert!(connection.bf_add("seen", "https://example.org/")?);
    assert_eq!(connection.bf_mexists("seen", &["https://example.org/", "https://example.com/"])?, [true, false]);
    Ok(())
}
