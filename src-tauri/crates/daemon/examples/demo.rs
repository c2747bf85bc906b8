//! Runs the example from the README in a temporary home, with the real components: an MCP client, the shim, the daemon,
//! bubblewrap and the filesystem server. Exits with status 0 only if every step has the expected result.

#[path = "demo/person.rs"]
mod person;
#[path = "demo/stage.rs"]
mod stage;

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use stage::{Stage, StepLog};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Demonstrates IronCurtain in a temporary home.
#[derive(Debug, Parser)]
struct Arguments {
    /// Answer the questions automatically.
    #[arg(long, value_enum)]
    answer: Option<AnswerAll>,
    /// Ask with the app's own dialog, which needs a display.
    #[arg(long, conflicts_with = "answer")]
    desktop: bool,
}

/// Automatic answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerAll {
    /// Allow once, then allow the folder, then deny after the grant is revoked.
    Allow,
    /// Deny every question.
    Deny,
    /// Let every question time out.
    Timeout,
}

type Client = RunningService<RoleClient, ()>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // If standard error is closed, the problem cannot be reported.
            let _ = writeln!(std::io::stderr(), "\n  The demo failed: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(demonstrate(arguments));
    runtime.shutdown_background();
    outcome
}

async fn demonstrate(arguments: &Arguments) -> anyhow::Result<()> {
    let mut log = StepLog::begin()?;
    let stage = Stage::new(arguments.answer == Some(AnswerAll::Timeout))?;
    let report = stage.file("Documents/tax/2026.txt", "income 1, tax 1\n")?;
    let other = stage.file("Documents/tax/2025.txt", "income 2, tax 1\n")?;
    let key = stage.file(".ssh/id_ed25519", "a private key\n")?;

    let _process = stage.start_trusted_process(arguments.desktop, arguments.answer).await?;
    log.step("the trusted process starts", "in a temporary home")?;

    let client =
        ().serve(TokioChildProcess::new(stage.shim())?).await.context("the client failed to connect")?;
    let tools = client.list_all_tools().await?;
    ensure!(tools.len() == 14, "the filesystem server has {} tools, not 14", tools.len());
    log.step(
        "an agent connects through the shim",
        &format!("{} tools, server in its own sandbox", tools.len()),
    )?;

    use_session_folder(&stage, &client, &mut log).await?;
    refused(&read(&client, &key).await?, "structural-protected-path")?;
    log.step("it tries to read ~/.ssh/id_ed25519", "refused, without asking you")?;

    let mut allowed = true;
    for what in ["it asks for ~/Documents/tax/2026.txt", "it asks for the same file again"] {
        let result = read(&client, &report).await?;
        allowed = is_allowed(&result);
        check_answer(arguments.answer, &result, "income 1")?;
        log.step(
            what,
            if allowed {
                "you allowed it, and the agent read it"
            } else {
                "refused, and the agent got the reason"
            },
        )?;
    }
    if allowed {
        revoke(&stage, &client, &report, &other, arguments.answer, &mut log).await?;
    }
    verify_log(&stage, &mut log)?;
    client.cancel().await?;
    log.end()
}

async fn use_session_folder(stage: &Stage, client: &Client, log: &mut StepLog) -> anyhow::Result<()> {
    let note = stage.session_folder()?.join("note.txt");
    let written = call(client, "write_file", json!({ "path": note, "content": "hello" })).await?;
    ensure!(is_allowed(&written), "writing in the session's own folder was refused: {}", text(&written));
    let back = read(client, &note).await?;
    ensure!(text(&back).contains("hello"), "what was read is not what was written: {}", text(&back));
    log.step("it writes and reads in its session's folder", "allowed, without asking you")
}

/// Lists and revokes the grants and checks that the agent needs approval again.
async fn revoke(
    stage: &Stage,
    client: &Client,
    report: &Path,
    other: &Path,
    answer: Option<AnswerAll>,
    log: &mut StepLog,
) -> anyhow::Result<()> {
    let grants = stage.ironcurtain(&["grants"])?;
    let grants = grants.get("grants").and_then(Value::as_array).cloned().unwrap_or_default();
    if grants.is_empty() {
        return log.step("nothing remains granted", "you allowed each call individually");
    }
    let folder = grants.iter().any(|g| g.get("kind") == Some(&json!("folder")));
    if folder {
        let result = read(client, other).await?;
        ensure!(
            text(&result).contains("income 2"),
            "the granted folder does not cover its file: {}",
            text(&result)
        );
        log.step("it reads another file of that folder", "allowed by what you granted")?;
    }
    for grant in &grants {
        let id = grant.get("id").and_then(Value::as_str).context("a grant has no id")?;
        let reply = stage.ironcurtain(&["grants", "revoke", id])?;
        ensure!(reply.get("revoked").is_some(), "the grant was not revoked: {reply}");
    }
    log.step(
        "you revoke the grant",
        "removed from the policy, the server's roots and the sandbox's mounts, with proof",
    )?;
    let result = read(client, report).await?;
    if answer.is_some() {
        refused(&result, "the user denied this call")?;
    }
    let outcome = if is_allowed(&result) {
        "you were asked again, and allowed it"
    } else {
        "you were asked again: refused"
    };
    log.step("it tries again", outcome)
}

fn verify_log(stage: &Stage, log: &mut StepLog) -> anyhow::Result<()> {
    let check = stage.ironcurtain(&["audit", "verify"])?;
    let audit = check.get("audit").context("the audit log was not checked")?;
    ensure!(audit.get("intact") == Some(&json!(true)), "the audit log is not intact: {audit}");
    let entries = audit.get("entries").and_then(Value::as_u64).unwrap_or_default();
    log.step("the audit log recorded everything", &format!("{entries} entries, hash chain intact"))?;
    log.quote(&stage.shortened(&stage.ironcurtain_text(&["audit", "tail", "-n", "100"])?))
}

fn check_answer(answer: Option<AnswerAll>, result: &CallToolResult, content: &str) -> anyhow::Result<()> {
    match answer {
        Some(AnswerAll::Allow) => ensure!(text(result).contains(content), "allowed, but: {}", text(result)),
        Some(AnswerAll::Deny) => refused(result, "the user denied this call")?,
        Some(AnswerAll::Timeout) => refused(result, "did not answer within")?,
        None if is_allowed(result) => {
            ensure!(text(result).contains(content), "allowed, but: {}", text(result))
        }
        None => refused(result, "DENIED")?,
    }
    Ok(())
}

async fn read(client: &Client, path: &Path) -> anyhow::Result<CallToolResult> {
    call(client, "read_text_file", json!({ "path": path })).await
}

async fn call(client: &Client, tool: &str, arguments: Value) -> anyhow::Result<CallToolResult> {
    let Value::Object(arguments) = arguments else { bail!("arguments must be an object") };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    Ok(client.call_tool(params).await?)
}

fn is_allowed(result: &CallToolResult) -> bool {
    result.is_error != Some(true)
}

fn refused(result: &CallToolResult, because: &str) -> anyhow::Result<()> {
    ensure!(!is_allowed(result), "it was allowed: {}", text(result));
    ensure!(
        text(result).contains(because),
        "it was refused, but not because of `{because}`: {}",
        text(result)
    );
    Ok(())
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|c| c.as_text().map(|t| t.text.clone()));
    texts.collect::<Vec<_>>().join("\n")
}
