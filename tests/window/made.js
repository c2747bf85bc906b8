// A fake app for the page: `window.__TAURI__` with data for every page. Loads in the browser before `app.js`.
//
// Tests use `made` for the data, the recorded commands, and `made.change()`, which signals a change.

(() => {
  const now = Date.now();
  const home = "/home/ada";
  const client = { name: "Claude Code", exe: "/opt/claude/claude", chain: [{ pid: 1, exe: null, name: "claude" }, { pid: 2, exe: null, name: "zsh" }, { pid: 3, exe: null, name: "gnome-terminal" }], cwd: `${home}/src/app`, says_it_is: "claude-code 2.1", label: null };
  const grant = (id, path, access, lifetime, more = {}) => ({ id, client: "Claude Code", server: "filesystem", session: null, path, kind: "folder", access, lifetime, expires_ms: null, created_ms: now - 20 * 60_000, last_used_ms: now - 90_000, uses: 31, provenance: "you answered question 12", suspended: null, server_changed: false, ending: null, unused_days: null, ...more });
  const call = (seq, ago, decision, verb, tool, reason, path, more = {}) => ({ seq, time_ms: now - ago * 1000, event: "decision", session: "s1", client: "Claude Code", server: "filesystem", tool, decision, outcome: decision === "allow" ? "Done" : null, succeeded: decision === "allow" ? true : null, verb, reason, summary: `${{ allow: "Allowed", deny: "Denied", escalate: "Asked" }[decision]}: ${reason}`, paths: path ? [path] : [], ...more });
  const quarter = 15 * 60_000;
  const day = { from_ms: Math.floor(now / quarter) * quarter - 95 * quarter, quarters: Array.from({ length: 96 }, (_, n) => (n % 32 > 20 || n > 90 ? [(n * 7) % 13, n % 9 === 0 ? 1 : 0, n % 23 === 0 ? 2 : 0] : [0, 0, 0])) };
  const file = (path, when, state, diff, more = {}) => ({ path, shown: path, when, is_new: !diff?.includes("\n-"), diff, state, moved_to: null, occupied: false, keys: [], time_ms: now - 50_000, ...more });
  const LIMITS = [["memory", "Memory", "MiB", 4096], ["processor", "CPU time", "% of one CPU", null], ["processes", "Processes and threads", "", 1024], ["open-files", "Open files of each process", "", 4096], ["file-size", "Largest file", "MiB", null], ["tmp-size", "Private /tmp", "MiB", 1024]];
  const limits = (own = {}) => LIMITS.map(([limit, name, unit, usual]) => ({ limit, name, unit, own: own[limit] ?? null, default: usual }));
  const isManaged = new URLSearchParams(location.search).has("managed");
  /** Settings of an organization that manages everything that it can. */
  const organization = {
    organization: "Example Inc.", revision: "2026-11-26", without: null, problem: null, locked: ["unsandboxed"], record: "organization",
    settings: {
      enforce_sandbox: true, forbid_unsandboxed: true, require_export: false, export_url: "https://otel.example.com:4318", export_paths: "none", max_grant_minutes: 480, network: "ask",
      allowed_servers: [{ name: null, package: "mcp-server-git", url: null }, { name: null, package: null, url: "https://mcp.example.com/*" }],
      denied_servers: [{ name: "photos", package: null, url: null }],
    },
  };
  const MANAGED_RULES = [
    { name: "managed:setting-network", description: "", then: "escalate", reason: "Example Inc. requires approval for each host", text: "{\n  \"name\": \"setting-network\"\n}", decided: 0, findings: [] },
    { name: "managed:no-customer-data", description: "", then: "deny", reason: "Agents must not use customer data.", text: "{\n  \"name\": \"no-customer-data\",\n  \"if\": { \"paths\": { \"within\": \"~/customers\" } }\n}", decided: 2, findings: [] },
  ];
  const made = {
    calls: [],
    /** Number of commands that have not been answered yet. */
    pending: 0,
    fail: {},
    hold: {},
    held: undefined,
    listeners: [],
    status: { protection: "protecting", pid: 4711, version: "0.1.0", started_ms: now - 3_600_000, sessions: 3, questions: 0, lockdown: false, troubles: [], other_home: null, servers: ["filesystem", "photos", "fetch", "git", "slack"], policy: "0".repeat(64) },
    sessions: [
      { id: "s1", client, server: "filesystem", connection: "c1", trouble: null, paused: false, remote: false, sandboxed: true, started_ms: now - 26 * 60_000, sandbox_dir: "", allowed: 148, denied: 3, asked: 4, left: 2, roots: [{ path: `${home}/.local/state/ironcurtain/sessions/s1/sandbox`, source: "the session's own folder", grant: null, access: ["read", "write", "delete"] }, { path: `${home}/src/app`, source: "rule `work`", grant: null, access: ["read"] }, { path: `${home}/Documents/tax`, source: "grant `g1`", grant: "g1", access: ["read"] }, { path: `${home}/Pictures/2026`, source: "grant `g2`", grant: "g2", access: ["read"] }], always: [], hosts: [] },
      { id: "s2", client: { ...client, name: "Cursor", exe: "/opt/cursor/cursor", says_it_is: null }, server: "photos", connection: null, trouble: "exit status 1; its last line on standard error: `no module <b>photos</b>`", paused: true, remote: false, sandboxed: false, started_ms: now - 4 * 60_000, sandbox_dir: "", allowed: 12, denied: 0, asked: 0, left: 0, roots: [], always: [], hosts: [] },
      { id: "s3", client, server: "fetch", connection: "c1", trouble: null, paused: false, remote: false, sandboxed: true, started_ms: now - 26 * 60_000, sandbox_dir: "", allowed: 23, denied: 0, asked: 0, left: 0, roots: [], always: [], hosts: ["docs.example.org"] },
    ],
    records: [
      { id: "s1", client: "Claude Code", server: "filesystem", started_ms: now - 26 * 60_000, ended_ms: null, looking: false, unfinished: [], files: [
        file(`${home}/src/app/.vscode/tasks.json`, "when you open this folder in VS Code", "left", "+{ \"label\": \"<b>build</b>\" }"),
        file(`${home}/src/app/Makefile`, "when you run make here", "left", " all:\n-\tcargo build\n+\tcargo build --release"),
        file(`${home}/src/app/.git/hooks/pre-commit`, "when you commit in this repository", "quarantined", null, { moved_to: `${home}/.local/state/ironcurtain/sandboxes/quarantine/1-0/pre-commit` }),
        file(`${home}/src/app/.git/config`, "when git runs here", "put-back", null, { keys: ["core.fsmonitor", "core.pager"] }),
      ] },
    ],
    quarantine: [
      { id: "s0", client: "Claude Code", server: "filesystem", started_ms: now - 9_000_000, ended_ms: now - 5_400_000, looking: false, unfinished: [], files: [
        file(`${home}/src/site/.envrc`, "when you enter this folder in a shell", "quarantined", "+export <b>PATH</b>=/tmp/evil", { moved_to: `${home}/.local/state/ironcurtain/sandboxes/quarantine/1-1/.envrc` }),
        file(`${home}/src/site/Makefile`, "when you run make here", "quarantined", null, { moved_to: `${home}/.local/state/ironcurtain/sandboxes/quarantine/1-2/Makefile`, occupied: true }),
      ] },
      { id: "s1", client: "Claude Code", server: "filesystem", started_ms: now - 26 * 60_000, ended_ms: null, looking: false, unfinished: [], files: [
        file(`${home}/src/app/.git/hooks/pre-commit`, "when you commit in this repository", "quarantined", null, { moved_to: `${home}/.local/state/ironcurtain/sandboxes/quarantine/1-0/pre-commit` }),
      ] },
    ],
    removed: [{ name: "trello", entry: JSON.stringify({ command: "npx", args: ["-y", "trello-mcp", "<b>not markup</b>"], env: { TRELLO_TOKEN: "(hidden)" } }, null, 2) }],
    profiles: [{ name: "work", servers: ["filesystem", "git"], missing: ["old"], clients: ["Claude Code"] }],
    plain: [{ server: "photos", place: "env.PHOTOS_TOKEN", name: "photos-PHOTOS_TOKEN" }],
    grants: [
      grant("g1", `${home}/Documents/tax`, ["read"], "this session", { session: "s1" }),
      grant("g2", `${home}/Pictures/2026`, ["read"], "15 minutes", { expires_ms: now + 14 * 60_000, created_ms: now - 60_000, last_used_ms: null, uses: 0 }),
      grant("g3", `${home}/notes/plan.md`, ["read", "write"], "always", { kind: "file", last_used_ms: null, uses: 0, suspended: "it is now a link to another place" }),
      grant("g4", "/srv/photos", ["read", "write", "delete"], "always", { client: "Cursor", server: "photos", created_ms: now - 60 * 86_400_000, last_used_ms: now - 41 * 86_400_000, unused_days: 41 }),
      grant("g5", "docs.example.org:443", ["reach"], "always", { kind: "host", server: "fetch", created_ms: now - 9 * 86_400_000, last_used_ms: now - 12 * 60_000 }),
      grant("g6", "send_message to \u05d0\u05d1\u05d2 <img src=x onerror=alert(1)>", ["use"], "1 hour", { kind: "tool", server: "slack", created_ms: now - 600_000, last_used_ms: now - 240_000, uses: 2, expires_ms: now + 3_000_000 }),
      grant("g8", `${home}/src/app`, ["read", "write"], "always", { server: "git", created_ms: now - 12 * 86_400_000, last_used_ms: now - 2 * 3_600_000 }),
      grant("g7", `${home}/src/secret-plans`, [], "until you revoke the denial", { kind: "declined", uses: 0, last_used_ms: null, provenance: "proposed workspace" }),
    ],
    waiting: [],
    day,
    questions: {
      missed: [
        { id: "q8", session: "s1", client: "Claude Code", server: "filesystem", tool: "write_file", lines: [`write ${home}/Documents/tax/2026/summary.md (+3 -1 lines)`], rule: "ask-before-writing", reason: "It is outside the folders you granted for writing.", since_ms: null, kept_seconds: 700, state: "missed" },
        { id: "q9", session: "s3", client: "Claude Code", server: "git", tool: "git_push", lines: ["push main to https://git.example/ada/app.git <img src=x onerror=alert(1)>"], rule: "ask-before-pushing", reason: "It leaves this computer.", since_ms: null, kept_seconds: 40, state: "allowed-late" },
      ],
      denied: [{ id: "q5", session: "s1", client: "Claude Code", server: "filesystem", what: `delete_file in ${home}/Pictures`, note: "not these", time_ms: now - 300_000 }],
    },
    clients: [{ key: "/opt/claude/claude", name: "Claude Code", servers: ["filesystem", "fetch"], live: ["filesystem", "fetch"], tools: { filesystem: [], fetch: ["list_pages"] } }, { key: "/opt/cursor/cursor", name: "Cursor", servers: ["photos"], live: ["photos"], tools: {} }],
    log: [
      call(1480, 95, "allow", "read", "read_text_file", "a permission", `${home}/Documents/tax/2026/summary.md`),
      call(1479, 1_290, "allow", "write", "write_file", "you allowed it", `${home}/Documents/tax/a.md`),
      call(1477, 3_100, "deny", "read", "read_text_file", "protected folder", `${home}/.ssh/id_ed25519`),
      call(1476, 4_000, "allow", "list", "list_directory", "rule `work`", `${home}/src/app`, { outcome: "The server answered with an error", succeeded: false }),
      call(1475, 9_000, "deny", "write", "write_file", "invalid argument <img src=x onerror=alert(1)>", `${home}/<b>x</b>`),
      ...Array.from({ length: 4 }, (_, n) => call(1474 - n, 9_010 + n, "allow", "read", "read_text_file", "rule `work`", `${home}/src/app/f${n}.rs`)),
      call(1470, 9_400, null, "", null, "", null, { event: "server", tool: null, outcome: null, summary: "The server filesystem started" }),
    ],
    details: [["Rule", "ask-before-reading"], ["Arguments", JSON.stringify({ path: `${home}/Documents/tax/a.md` }, null, 2)], ["Took", "12 ms"]],
    rules: {
      text: JSON.stringify({ schemaVersion: 1, rules: [{ name: "deny-secrets", description: "Denies folders with keys.", if: {}, then: "deny" }, { name: "work", description: "Allows reading in the folder of this project.", if: { roles: ["read-path"] }, then: "allow" }, { name: "ask-before-writing", description: "Asks before anything outside the session sandbox is created or changed.", if: {}, then: "escalate" }] }, null, 2),
      file: `${home}/.config/ironcurtain/policy/compiled-policy.json`, own: true, findings: ["`send_message` of `slack`: denied: no rule covers its role `email-address`"], counted_since_ms: now - 7 * 86_400_000,
      rules: [
        { name: "deny-secrets", description: "Denies folders with keys.", then: "deny", reason: "Keys are private.", text: "{\n  \"name\": \"deny-secrets\"\n}", decided: 3, findings: [] },
        { name: "work", description: "Allows reading in the folder of this project.", then: "allow", reason: "Work is free.", text: "{\n  \"name\": \"work\"\n}", decided: 1204, findings: ["no annotated server or tool is named `notes`"] },
        { name: "ask-before-writing", description: "Asks before anything outside the session sandbox is created or changed.", then: "escalate", reason: "It is outside the folders you granted for writing.", text: "{}", decided: 4, findings: [] },
      ],
      tools: [{ server: "filesystem", tools: ["read_text_file", "write_file"] }, { server: "git", tools: ["git_status"] }],
      managed: isManaged ? { organization: "Example Inc.", rules: MANAGED_RULES } : null,
    },
    servers: {
      file: `${home}/.config/ironcurtain/mcp-servers.json`,
      servers: [
        { name: "filesystem", description: "Reads and writes your files.", command: "ironcurtain-filesystem", sandboxed: true, reaches: ["Files: what you granted, and the session's own folder", "Network: none"], network: null, tools: [{ name: "read_text_file", means: "reads a path" }, { name: "write_file", means: "writes a path" }], version: null, problem: null, can_install: false, openings: [], limits: limits(), secrets: [], changed_tools: [], live: [{ session: "s1", client: "Claude Code", started_ms: now - 26 * 60_000, restarts: 0, trouble: null }] },
        { name: "photos", description: null, command: "/home/ada/.local/bin/photos-mcp", sandboxed: false, reaches: ["Everything that you can"], network: null, tools: [], version: null, problem: null, can_install: true, openings: [], limits: [], secrets: ["photos-token"], changed_tools: [], live: [{ session: "s2", client: "Cursor", started_ms: now - 4 * 60_000, restarts: 2, trouble: "exit status 1; its last line on standard error: `no module <b>photos</b>`" }] },
        { name: "fetch", description: null, command: "uvx mcp-server-fetch==2026.6", sandboxed: true, reaches: ["Files: system programs and its own, read-only", "Network: docs.example.org; you are asked about any other host"], network: { hosts: ["docs.example.org"], asks: true }, tools: [{ name: "fetch", means: "fetches an address" }], version: "2026.6.4", problem: null, can_install: true, secrets: [], changed_tools: [], live: [{ session: "s3", client: "Claude Code", started_ms: now - 26 * 60_000, restarts: 0, trouble: null }], limits: limits({ processes: 64 }), openings: [{ opening: { kind: "write", what: "/home/ada/.cache/fetch" }, words: "fetch may read, change and delete everything in `/home/ada/.cache/fetch`, at any time and without asking, whichever agent uses it" }, { opening: { kind: "host", what: "docs.example.org" }, words: "fetch may send anything it knows to `docs.example.org`, at any time and without asking, whichever agent uses it" }] },
        { name: "git", description: null, command: "uvx mcp-server-git==2026.10.19", sandboxed: true, reaches: ["Files: the repositories that you granted", "Network: git.example; you are asked about any other host"], network: { hosts: ["git.example"], asks: true }, tools: [{ name: "git_status", means: "reads a path" }, { name: "git_push", means: "pushes to a remote" }], version: "2026.10.19", problem: null, can_install: true, openings: [], limits: limits(), secrets: [], changed_tools: [], live: [] },
        { name: "slack", description: null, command: "npx -y slack-mcp-server@1.1.28", sandboxed: true, reaches: ["Files: system programs and its own, read-only", "Network: slack.com"], network: { hosts: ["slack.com"], asks: false }, tools: [{ name: "send_message", means: "sends a message" }], version: "1.1.28", problem: null, can_install: true, openings: [], limits: limits(), secrets: [], changed_tools: [], live: [] },
      ],
      catalog: [
        { id: "time", title: "Time", about: "Tells the time and converts between zones.", why: "It needs nothing of yours, so it sees nothing and reaches no network.", from: "PyPI package mcp-server-time", needs: null, settings: {}, package: true },
        { id: "github", title: "GitHub", about: "Works with repositories, issues and pull requests on GitHub.", why: "It reaches api.github.com and nothing else.", from: "https://github.com/github/github-mcp-server", needs: "the program github-mcp-server", settings: { GITHUB_HOST: "Your own server, or github.com" }, package: false },
        { id: "fetch", title: "Fetch", about: "Fetches a page as text.", why: "You are asked about every host.", from: "PyPI package mcp-server-fetch", needs: null, settings: {}, package: true },
      ],
    },
    bundle: {
      file: `${home}/Downloads/notes.mcpb`, name: "notes", title: "My notes", about: "Keeps notes in a folder. <img src=x onerror=alert(1)>", maker: "Notes & Sons",
      settings: [
        { key: "folder", title: "Where notes are", about: "A folder with notes.", kind: "folder", required: true, several: true, proposed: ["${HOME}/Notes"] },
        { key: "key", title: "Key", about: "From the site of the service.", kind: "secret", required: true, several: false, proposed: [] },
        { key: "level", title: "Level <b>not markup</b>", about: "How much it tells.", kind: "number", required: false, several: false, proposed: ["2"] },
        { key: "list", title: "A list", about: "", kind: "file", required: false, several: false, proposed: [] },
        { key: "sync", title: "Keep in step", about: "With other computers.", kind: "toggle", required: false, several: false, proposed: ["true"] },
      ],
    },
    first_run: false,
    look: { folder: `${home}/.ssh`, there: 3, seen: 0, said: `ls: cannot access '${home}/.ssh': No such file or directory` },
    secrets: { place: "keyring", file: `${home}/.local/state/ironcurtain/secrets.age`, names: ["brave-key"] },
    found: [
      { id: "claude-code", name: "Claude Code", file: `${home}/.claude.json`, state: "bypassing", problem: null, entries: [{ name: "filesystem", way: "server filesystem, protected", past: false, remote: false }, { name: "jira", way: "not protected: started directly (npx jira-mcp) with all your rights", past: true, remote: false }, { name: "maps", way: "not protected: started directly (npx maps-mcp) with all your rights", past: true, remote: false }] },
      { id: "cursor", name: "Cursor", file: `${home}/.cursor/mcp.json`, state: "not-connected", problem: null, entries: [] },
      { id: "zed", name: "Zed", file: `${home}/.config/zed/settings.json`, state: "missing", problem: null, entries: [] },
    ],
    settings: { deadline_seconds: 45, questions_per_minute: 20, denial_holds_seconds: 30, notifications: "full", max_sessions: 1000, keep_days: 365, unsandboxed: "enforce", autostart: false, appearance: new URLSearchParams(location.search).get("theme") ?? "system", file: `${home}/.config/ironcurtain/config.json`, managed: isManaged ? organization : null },
    export: isManaged
      ? { url: "https://otel.example.com:4318", paths: "none", sent: 512, not_sent: 0, failure: null, managed: { organization: "Example Inc.", url: "https://otel.example.com:4318", paths: "none", is_missing: false, is_required: true } }
      : { url: null, paths: "hashed", sent: 0, not_sent: 0, failure: null, managed: null },
    asked: {
      id: "q1", host: null, notice: null, band: null, also: ["To do this, the server briefly gets access to everything in ~/Documents/tax/2026."], denial: "write_file in ~/Documents", mirrored: false, times: [["once", "this session"], ["15 minutes"]],
      headline: [["Claude Code", "strong"], [" wants to ", "plain"], ["write", "strong"], [" 2026/summary.md", "strong"]].map(([text, tone]) => ({ text, tone })),
      lines: [{ words: [["write ", "strong"], ["~/Documents/tax/", "quiet"], ["2026/summary.md", "strong"]].map(([text, tone]) => ({ text, tone })), note: "new file, 7 bytes", notes: [{ text: "requested as <img src=x onerror=alert(1)>", tone: "quiet" }, { text: "\u26a0 link out of ~/src", tone: "warn" }] }],
      with: [{ words: [{ text: "with mode: 0644", tone: "plain" }], note: null, notes: [] }],
      facts: [["Who", "/usr/bin/claude, started by zsh in gnome-terminal"], ["How", "write_file, a tool of the server filesystem, sandboxed"]].map(([label, text]) => ({ label, lines: [[{ text, tone: "plain" }]] })),
      preview: { title: "What it would write", text: "# 2026\n<b>not markup</b>\n", diff: false },
      rest: { title: "Full text of what is shortened above", text: "note:\n\u2502 <i>and so on</i>", diff: false },
      details: "write: /home/ada/Documents/tax/2026/summary.md",
      choices: [{ label: "this file", sentence: "Claude Code may create this one file" }, { label: "the folder ~/Documents/tax", sentence: "Claude Code may write in it" }],
    },
    stage: { hint: "To allow: point at Allow, or press Tab until you are on it", filled: 0, armed: false, ignored: 0, againMs: 60_000, clock: "Denied in 0:44 if you don't answer", soon: false, allow: "Allow once", outcome: "Claude Code may create this one file, once.", more: 1 },
    change: () => made.listeners.forEach((then) => then()),
  };

  const commands = {
    snapshot: () => ({ status: made.status, sessions: made.sessions, records: made.records, quarantine: made.quarantine, grants: made.grants, changed_servers: made.servers.servers.filter((one) => one.suspended).map((one) => one.name), changed_tools: made.servers.servers.filter((one) => one.changed_tools.some((tool) => tool.state === "suspended")).map((one) => one.name), waiting: made.waiting, questions: made.questions, clients: made.clients, recent: made.log.filter((one) => one.decision).slice(0, 6), day: made.day, first_run: made.first_run, home, shim: "/usr/bin/ironcurtain-shim", appearance: made.settings.appearance }),
    show_question: () => null,
    end_session: ({ session }) => { made.sessions = made.sessions.filter((one) => one.id !== session); made.change(); },
    restart_server: () => null,
    pause_session: ({ session, on }) => { made.sessions.find((one) => one.id === session).paused = on; made.change(); },
    lock_down: ({ on, end_sessions }) => { made.status.lockdown = on; made.status.protection = on ? "lockdown" : "protecting"; if (end_sessions) made.sessions = []; made.change(); },
    forget_question: ({ question }) => { made.questions.missed = made.questions.missed.filter((one) => one.id !== question); made.questions.denied = made.questions.denied.filter((one) => one.id !== question); made.change(); },
    ask_again: ({ question }) => { made.questions.missed.find((one) => one.id === question).state = "allowed-late"; made.change(); return true; },
    decide_file: ({ session, path, choice }) => {
      if (choice !== "keep" && choice !== "quarantine") {
        made.quarantine.forEach((one) => { one.files = one.files.filter((file) => one.id !== session || file.path !== path); });
        made.quarantine = made.quarantine.filter((one) => one.files.length > 0);
        return made.change();
      }
      made.records.find((one) => one.id === session).files.find((one) => one.path === path).state = choice === "keep" ? "kept" : "quarantined"; made.change();
    },
    revoke_grants: ({ grants }) => {
      const told = grants.map((id) => id === "g4" ? { grant: id, at_ms: null, restarted: 0, note: null, problem: "the server could not be restarted, so it may still see the folder" } : { grant: id, at_ms: Date.now(), restarted: 0, note: null, problem: null });
      made.gone = made.grants.filter((one) => grants.includes(one.id) && one.id !== "g4");
      made.grants = made.grants.filter((one) => !made.gone.includes(one));
      made.change();
      return told;
    },
    restore_grant: ({ grant: id }) => { const back = made.gone.find((one) => one.id === id); made.grants.push({ ...back, id: `${id}-again` }); made.change(); },
    change_grant: ({ grant: id, terms }) => { Object.assign(made.grants.find((one) => one.id === id), terms.access ? { access: terms.access } : {}, terms.lifetime ? { lifetime: terms.lifetime } : {}); made.change(); return true; },
    grant_beforehand: ({ gift }) => { const path = gift.what ? gift.what : `${home}/Documents/recipes`; made.grants.push(grant(`g${made.grants.length + 10}`, path, gift.access, gift.lifetime, { client: made.clients.find((one) => one.key === gift.client).name, server: gift.server, provenance: "you picked it" })); made.change(); return path; },
    rules: () => made.rules,
    explain: ({ call: tried }) => ({ decision: "escalate", by: "ask-before-writing", reason: "It is outside the folders you granted for writing.", paths: [`path is ${JSON.parse(tried.arguments).path}`], steps: [{ about: "write-path in path: /home/ada/Documents/notes.txt", decision: "escalate", by: "the rule ask-before-writing", passed: [{ rule: "deny-secrets", why: "the path is not in its folder" }] }] }),
    try_rules: ({ text }) => {
      try { JSON.parse(text); } catch { return { problem: "line 3: it is not JSON", findings: [], added: [], removed: [], changed: [], looser: [], stricter: [], same: 0, not_judged: 0, calls: 0 }; }
      return { problem: null, findings: ["`work` reaches all of your home"], added: ["deny-filesystem-write-file"], removed: [], changed: [], looser: [], stricter: [{ server: "filesystem", tool: "write_file", then: "allow", now: "deny", count: 4, example: `${home}/Documents/tax/a.md`, reason: "You made this rule from a call on record." }], same: 1200, not_judged: 2, calls: 1206 };
    },
    save_rules: ({ text }) => { made.rules = { ...made.rules, text, own: true }; },
    found_clients: () => made.found,
    plan_client: ({ id, wish }) => ({ file: made.found.find((one) => one.id === id).file, diff: `+  "${wish.kind}${wish.only ? ` ${wish.only}` : ""}${wish.profile ? ` ${wish.profile}` : ""}": "<b>not markup</b>"`, servers_diff: wish.kind === "move" ? "+ jira" : null, left: [], secrets: wish.kind === "move" && wish.secrets ? [{ server: "jira", place: "env.JIRA_TOKEN", name: "jira-JIRA_TOKEN" }] : [] }),
    write_client: ({ id }) => { made.found.find((one) => one.id === id).state = "connected"; return "Written. Restart it to apply it."; },
    decide_identity: ({ server }) => { made.servers.servers.find(({ name }) => name === server).suspended = null; made.grants.forEach((one) => { if (one.server_changed) Object.assign(one, { suspended: null, server_changed: false }); }); made.change(); return `${server} keeps its permissions. Restart it in your agent.`; },
    decide_tool: ({ server, change, decision }) => {
      const one = made.servers.servers.find(({ name }) => name === server);
      if (decision === "update") one.changed_tools = one.changed_tools.filter((tool) => tool.change !== change);
      else one.changed_tools.find((tool) => tool.change === change).state = decision === "keep" ? "kept" : "removed";
      made.change();
      return `Decided: ${decision}.`;
    },
    servers: () => ({ ...made.servers, removed: made.removed }),
    plan_removal: ({ name }) => ({ name, entry: JSON.stringify({ command: name, env: { TOKEN: "(hidden)" } }, null, 2), clients: ["Cursor (its entry photos)"], profiles: ["work"], data: null }),
    remove_server: () => { const [, { name }] = made.calls.findLast(([command]) => command === "plan_removal"); made.removed.push({ name, entry: "{}" }); made.servers.servers = made.servers.servers.filter((one) => one.name !== name); made.sessions = made.sessions.filter((one) => one.server !== name); made.change(); return `${name} was removed. Its session was closed.`; },
    restore_server: ({ name }) => { made.removed = made.removed.filter((one) => one.name !== name); made.servers.servers.push({ ...made.servers.servers[0], name, live: [] }); },
    forget_server: ({ name }) => { made.removed = made.removed.filter((one) => one.name !== name); },
    plan_opening: ({ server, wanted }) => { const what = wanted.host ?? `${home}/.cache/x`; if (what.includes("/") && wanted.kind === "host") throw { code: "storage", message: `\`${what}\` is not a host: write it without scheme, path and login; nothing was opened` }; return { what, words: `${server} may send anything it knows to \`${what}\`, at any time and without asking, whichever agent uses it` }; },
    write_opening: () => "It is open to new sessions.",
    close_opening: ({ server, opening }) => { const one = made.servers.servers.find(({ name }) => name === server); one.openings = one.openings.filter((open) => open.opening.what !== opening.what); return `${opening.what} is closed.`; },
    plan_limits: ({ wanted }) => {
      if (wanted.memory < 32 && wanted.memory !== null) throw { code: "storage", message: `memory cannot be ${wanted.memory}: write 32 to 1048576 MiB` };
      return { differences: [{ looser: true, words: "Processes and threads: 1024 in place of 64. Looser: it can start more at once." }, { looser: false, words: `Memory: ${wanted.memory} MiB in place of 4096 MiB. Tighter: it fails where it needs more.` }], diff: `+      "memoryMib": ${wanted.memory},\n-      "processes": 64` };
    },
    write_limits: () => { const [, { server, wanted }] = made.calls.findLast(([command]) => command === "plan_limits"); made.servers.servers.find(({ name }) => name === server).limits = limits(wanted); return "Changes apply to new sessions."; },
    plan_login: ({ server, client_id }) => {
      if (server === "hub" && !client_id) throw { code: "storage", message: "`https://hub.example` does not let programs register themselves" };
      return { number: made.calls.filter(([command]) => command === "plan_login").length, lines: [`Server: ${server}, https://mcp.example.com/mcp`, "Authorization server: https://auth.example.com/<b>not markup</b>", "Scopes: read, write"], question: `Open \`auth.example.com\` in your browser, to log in for \`${server}\`?` };
    },
    log_in: () => {
      if (made.waitsForBrowser) return new Promise((resolve) => { made.cancelled = () => resolve(null); });
      const [, { server }] = made.calls.findLast(([command]) => command === "plan_login"); made.servers.servers.find(({ name }) => name === server).login = { issuer: "https://auth.example.com", scopes: ["read", "write"], has_ended: false }; return `You are logged in to ${server}.`; },
    cancel_login: () => made.cancelled(),
    log_out: ({ server }) => { made.servers.servers.find(({ name }) => name === server).login = null; return `You are logged out of ${server}.`; },
    profiles: () => made.profiles,
    change_profile: ({ name, servers }) => { made.profiles = [...made.profiles.filter((one) => one.name !== name), { name, servers, missing: [], clients: [] }]; },
    delete_profile: ({ name }) => { made.profiles = made.profiles.filter((one) => one.name !== name); },
    plan_secret_move: () => made.plain,
    write_secret_move: () => { made.plain = []; return "Moved. The servers now refer to them by name."; },
    add_server: ({ server }) => { made.servers.servers.push({ name: server.name, description: null, command: `uvx ${server.name}`, sandboxed: true, reaches: ["Network: none"], network: null, tools: [], version: null, problem: null, can_install: true, openings: [], limits: limits(), secrets: [], live: [] }); return [`Added to ${made.servers.file}.`]; },
    choose_bundle: () => made.bundle,
    pick_for_bundle: ({ setting }) => setting === "folder" ? [`${home}/Documents/notes`] : null,
    plan_bundle: ({ wanted }) => {
      if (wanted.values.level?.[0] > 3) throw { code: "storage", message: `\`${wanted.values.level[0]}\` is not a number from 1 to 3, as \`level\` has to be` };
      return { name: wanted.name || "notes", command: "node /bundle/server.js <b>not markup</b>", entry: JSON.stringify({ command: "node", args: ["/bundle/server.js", "<b>not markup</b>"], worksWith: [`${home}/Documents/notes`] }, null, 2), reaches: ["Files: what you granted, the session's own folder, and its own program", `Works with, after you allow it for an agent: ${home}/Documents/notes`, "Network: none"], remote: false, secrets: wanted.without.includes("key") ? {} : { key: `${wanted.name || "notes"}-key` }, plain_values: false };
    },
    discard_bundle: () => null,
    plan_server: ({ wanted }) => ({ name: wanted.name || "far", command: `npx -y ${wanted.what} <b>not markup</b>`, secrets: {}, entry: JSON.stringify({ command: "npx", args: ["-y", wanted.what, "<b>not markup</b>"] }, null, 2), reaches: ["Files: what you granted, the session's own folder, and its own program", "Network: none"], remote: wanted.what.startsWith("http"), plain_values: true }),
    write_server: () => { const [command, { wanted }] = made.calls.findLast(([name]) => name === "plan_server" || name === "plan_bundle"); made.servers.servers.push({ ...made.servers.servers[0], name: wanted.name || (command === "plan_bundle" ? "notes" : "far"), live: [] }); return `Added to ${made.servers.file}. It has not been started.`; },
    server_log: () => ["Traceback (most recent call last):", "ModuleNotFoundError: <b>no module photos</b>"],
    secrets: () => made.secrets,
    set_secret: ({ name }) => { made.secrets.names = [...new Set([...made.secrets.names, name])]; },
    remove_secret: ({ name }) => { made.secrets.names = made.secrets.names.filter((one) => one !== name); },
    make_secrets_file: () => { made.secrets = { ...made.secrets, place: "unlocked", names: [] }; },
    unlock_secrets: ({ passphrase }) => {
      if (passphrase !== "four words and more") throw { code: "storage", message: "the passphrase is wrong, or the file was changed" };
      made.secrets.place = "unlocked";
    },
    install_server: () => "photos-mcp 2026.1 is installed. It has not been started.",
    check_for_update: () => ({ from: "2026.6.4", to: "2026.7.1", note: null, tools: ["fetch: what it is said to do changed"] }),
    apply_update: () => "New sessions use version 2026.7.1.",
    review_tools: () => ({ changes: true, gone: [], tools: [{ name: "git_status", left_out: null, change: "changed", differs: ["its server describes its arguments in other words now", "repo_path: read-path before, write-path now"], arguments: [{ name: "repo_path", roles: "read-path", sure: "known", reason: "its name ends in _path" }] }, { name: "git_run", left_out: "nothing tells what `command` is", change: "left out", differs: [], arguments: [] }] }),
    save_tools: () => "Written.",
    activity: ({ wanted, before, most }) => {
      const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
      const all = made.log.filter((one) => words.every((word) => JSON.stringify(one).toLowerCase().includes(word)) && (!wanted.decision || one.decision === wanted.decision) && (!wanted.server || one.server === wanted.server) && (!wanted.client || one.client === wanted.client) && (!wanted.from_ms || one.time_ms >= wanted.from_ms) && (!wanted.to_ms || one.time_ms < wanted.to_ms) && (before === null || one.seq < before));
      return { calls: all.slice(0, most), next: all.length > most ? all[most - 1].seq : null };
    },
    call_details: () => made.details,
    export_activity: ({ format }) => `${home}/record.${format}`,
    check_log: () => ({ intact: true, entries: 1_482, problem: null }),
    ask_practice_question: () => "denied",
    try_private_folder: () => made.look,
    starting_folder: () => `${home}/Documents/recipes`,
    finish_first_steps: () => { made.first_run = false; },
    settings: () => made.settings,
    consent_page: () => made.asked,
    consent_changing: () => made.stage,
    consent_tell: () => made.stage,
    record_export: () => made.export,
    export_sample: ({ paths }) => [JSON.stringify({ event: "ironcurtain.decision", attributes: { "ironcurtain.paths": paths } }, null, 2)],
    enable_export: ({ url, paths }) => { made.export = { ...made.export, url, paths: paths ?? made.export.managed?.paths ?? "hashed" }; return made.export; },
    disable_export: () => { made.export = { ...made.export, url: null }; return made.export; },
    change_settings: ({ changes }) => { made.settings = { ...made.settings, ...changes }; return made.settings; },
  };
  window.made = made;
  window.__TAURI__ = {
    core: {
      invoke: async (command, values = {}) => {
        made.calls.push([command, values]);
        made.pending += 1;
        try {
          // Tests hold answers back: all of them, or those of a command.
          const held = made.held ?? made.hold[command];
          await held;
          if (made.held === held) made.held = undefined;
          if (made.fail[command]) throw { code: "storage", message: made.fail[command] };
          if (!commands[command]) throw { code: "malformed", message: `there is no command ${command}` };
          // The page receives a copy, asynchronously, as it does over IPC.
          return structuredClone((await commands[command](structuredClone(values))) ?? null);
        } finally {
          made.pending -= 1;
        }
      },
    },
    event: { listen: async (_, then) => made.listeners.push(then) },
  };
})();
