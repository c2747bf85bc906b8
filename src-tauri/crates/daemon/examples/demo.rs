//! The story of the README, told by the real parts: an MCP client, the shim, the trusted process, bubblewrap and the
//! filesystem server, in a temporary home. Ends with status 0 only if every step went as told.

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
use stage::{Stage, Told};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Tells the story of IronCurtain in a temporary home.
#[derive(Debug, Parser)]
struct Arguments {
    /// Answer the questions without a person.
    #[arg(long, value_enum)]
    answer: Option<AnswerAll>,
    /// Ask with the app's own dialog; needs a display.
    #[arg(long, conflicts_with = "answer")]
    desktop: bool,
}

/// The way in which questions are answered without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerAll {
    /// Yes once, then yes to the folder; no after it was taken back.
    Allow,
    /// No.
    Deny,
    /// Not at all.
    Timeout,
}

type Client = RunningService<RoleClient, ()>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match tell(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(std::io::stderr(), "\n  The story went wrong: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn tell(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let told = runtime.block_on(story(arguments));
    runtime.shutdown_background();
    told
}

async fn story(arguments: &Arguments) -> anyhow::Result<()> {
    let mut told = Told::begin()?;
    let stage = Stage::set(arguments.answer == Some(AnswerAll::Timeout))?;
    let report = stage.file("Documents/tax/2026.txt", "income 1, tax 1\n")?;
    let other = stage.file("Documents/tax/2025.txt", "income 2, tax 1\n")?;
    let key = stage.file(".ssh/id_ed25519", "a private key\n")?;

    let _process = stage.start_trusted_process(arguments.desktop, arguments.answer).await?;
    told.step("the trusted process runs", "in a temporary home")?;

    let client =
        ().serve(TokioChildProcess::new(stage.shim())?).await.context("the client could not connect")?;
    let tools = client.list_all_tools().await?;
    ensure!(tools.len() == 14, "the filesystem server has {} tools, not 14", tools.len());
    told.step(
        "an agent connects through the shim",
        &format!("{} tools, server in its own sandbox", tools.len()),
    )?;

    inside(&stage, &client, &mut told).await?;
    refused(&read(&client, &key).await?, "structural-protected-path")?;
    told.step("it tries to read ~/.ssh/id_ed25519", "refused, nobody had to be asked")?;

    let mut allowed = true;
    for what in ["it asks for ~/Documents/tax/2026.txt", "it asks for the same file again"] {
        let result = read(&client, &report).await?;
        allowed = is_allowed(&result);
        check_answer(arguments.answer, &result, "income 1")?;
        told.step(
            what,
            if allowed { "you said yes: here it is" } else { "refused, and the agent was told why" },
        )?;
    }
    if allowed {
        taken_back(&stage, &client, &report, &other, arguments.answer, &mut told).await?;
    }
    on_record(&stage, &mut told)?;
    client.cancel().await?;
    told.end()
}

async fn inside(stage: &Stage, client: &Client, told: &mut Told) -> anyhow::Result<()> {
    let note = stage.session_folder()?.join("note.txt");
    let written = call(client, "write_file", json!({ "path": note, "content": "hello" })).await?;
    ensure!(is_allowed(&written), "writing in the session's own folder was refused: {}", text(&written));
    let back = read(client, &note).await?;
    ensure!(text(&back).contains("hello"), "what was read is not what was written: {}", text(&back));
    told.step("it writes and reads in its session's folder", "allowed, nobody had to be asked")
}

/// With something granted: it is listed, taken back with proof, and gone.
async fn taken_back(
    stage: &Stage,
    client: &Client,
    report: &Path,
    other: &Path,
    answer: Option<AnswerAll>,
    told: &mut Told,
) -> anyhow::Result<()> {
    let grants = stage.ironcurtain(&["grants"])?;
    let grants = grants.get("grants").and_then(Value::as_array).cloned().unwrap_or_default();
    if grants.is_empty() {
        return told.step("nothing stays granted", "you allowed each call by itself");
    }
    let folder = grants.iter().any(|g| g.get("kind") == Some(&json!("folder")));
    if folder {
        let result = read(client, other).await?;
        ensure!(
            text(&result).contains("income 2"),
            "the granted folder does not cover its file: {}",
            text(&result)
        );
        told.step("it reads another file of that folder", "allowed by what you granted")?;
    }
    for grant in &grants {
        let id = grant.get("id").and_then(Value::as_str).context("a grant has no id")?;
        let reply = stage.ironcurtain(&["grants", "revoke", id])?;
        ensure!(reply.get("revoked").is_some(), "the grant was not taken back: {reply}");
    }
    told.step(
        "you take it back",
        "gone from policy, from the server's roots and from the kernel's view: proved",
    )?;
    let result = read(client, report).await?;
    if answer.is_some() {
        refused(&result, "the user denied this call")?;
    }
    let said = if is_allowed(&result) {
        "you were asked again, and said yes"
    } else {
        "you were asked again: refused"
    };
    told.step("it tries once more", said)
}

fn on_record(stage: &Stage, told: &mut Told) -> anyhow::Result<()> {
    let check = stage.ironcurtain(&["audit", "verify"])?;
    let audit = check.get("audit").context("the audit log was not checked")?;
    ensure!(audit.get("intact") == Some(&json!(true)), "the audit log does not hold: {audit}");
    let entries = audit.get("entries").and_then(Value::as_u64).unwrap_or_default();
    told.step("all of it is on record", &format!("{entries} entries, every link of the chain holds"))?;
    told.quote(&stage.shortened(&stage.ironcurtain_text(&["audit", "tail", "-n", "100"])?))
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
