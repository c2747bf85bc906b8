//! Evaluates policies for a comparison with another implementation. Reads one JSON request per line.
//!
//! `oracle --data DIR` reads the requests from standard input. Names in a request refer to files in DIR.
//!
//! - Only calls the library. Comments point out features that exist only in the other implementation.
//! - Judges recorded calls unchanged: accepts undeclared arguments and treats a missing lists file as empty lists. The
//!   daemon denies such calls and refuses to start without the file.

#[path = "oracle/calls.rs"]
mod calls;
#[path = "oracle/contained.rs"]
mod contained;
#[path = "oracle/container.rs"]
mod container;
#[path = "oracle/data_set.rs"]
mod data_set;
#[path = "oracle/lines.rs"]
mod lines;
#[path = "oracle/plain.rs"]
mod plain;
#[path = "../../policy/tests/judging/peer/recorded.rs"]
mod recorded;

use anyhow::{Context, bail};
use data_set::DataSet;
use serde_json::Value;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--data").skip(1);
    let data = arguments.next().map(PathBuf::from).context("usage: oracle --data DIR")?;
    let data = DataSet::new(data)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        if let Some(answer) = lines::answer_line(&line, |request| answer(&data, request)) {
            serde_json::to_writer(&mut out, &answer)?;
            writeln!(out)?;
        }
    }
    Ok(out.flush()?)
}

fn answer(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    match text(request, "op")? {
        "evaluate" => calls::evaluate(data, request, false),
        "prepareEvaluate" => calls::evaluate(data, request, true),
        "prepare" => calls::prepare(data, request),
        "annotation" => calls::annotation(data, request),
        "roots" => plain::roots(data, request),
        "toMcpRoots" => plain::to_mcp_roots(request),
        "requiredServers" => plain::required_servers(data, request),
        "resolveRealPath" => plain::real_path(data, request),
        "directoryForPath" => plain::directory(data, request),
        "isWithinDirectory" => plain::is_within(data, request),
        "expandTilde" => plain::expand_tilde(data, request),
        "isIpAddress" => plain::is_ip(request),
        "canonicalize" => plain::canonicalize(data, request),
        "domainOf" => plain::domain_of(data, request),
        "domainMatches" => plain::domain_matches(request),
        "validateArgs" => plain::validate(request),
        "rewriteResult" => container::rewrite_result(request),
        "resolveSandboxConfig" => contained::resolve(data, request),
        "auditConfigs" => contained::audit(data, request),
        "serverDomainAllowlists" => contained::domains(request),
        "writeServerSettings" => contained::write(request),
        "rewriteServerSettings" => contained::rewrite(request),
        "wrapServerCommand" => contained::wrap(data, request),
        "annotateSandboxViolation" => contained::blocked(request),
        other => bail!("unsupported operation `{other}`"),
    }
}

/// Returns a required string field of a request.
fn text<'a>(request: &'a Value, field: &str) -> anyhow::Result<&'a str> {
    request.get(field).and_then(Value::as_str).with_context(|| format!("`{field}` is missing"))
}
