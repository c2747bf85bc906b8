// Types of the values exchanged with the app. Contains no code.

/**
 * @typedef {{ pid: number, exe: string | null, name: string }} Process
 * @typedef {{ name: string, exe: string | null, chain: Process[], cwd: string | null, says_it_is: string | null, label: string | null }} Client
 * @typedef {{ path: string, source: string, grant: string | null, access: Access[] }} Root
 *   `access` lists what is allowed there without approval.
 * @typedef {{ id: string, client: Client, server: string, connection: string | null, run?: string, trouble: string | null, sandboxed: boolean,
 *   remote: boolean, started_ms: number, sandbox_dir: string, allowed: number, denied: number, asked: number, roots: Root[],
 *   left: number, paused: boolean, hosts: string[], always: Root[] }} Session
 *   `always` are the paths that the server's entry, or a run's profile, opens: `/` for this computer's files.
 *   `hosts` can be reached without approval, because of rules, permissions or the server's settings.
 * @typedef {{ path: string, shown: string, when: string, is_new: boolean, diff: string | null,
 *   state: "left" | "kept" | "quarantined" | "returned" | "exchanged" | "deleted" | "put-back", moved_to: string | null,
 *   occupied: boolean, keys: string[], time_ms: number }} LeftFile
 * @typedef {{ id: string, client: string, server: string, started_ms: number, ended_ms: number | null, looking: boolean,
 *   files: LeftFile[], unfinished: string[] }} SessionRecord
 * @typedef {"read" | "write" | "delete"} Access
 * @typedef {"session" | "quarter-hour" | "hour" | "always"} Lifetime
 * @typedef {{ id: string, client: string, server: string, session: string | null, path: string,
 *   kind: "file" | "folder" | "host" | "tool" | "declined", access: string[], lifetime: string, expires_ms: number | null,
 *   created_ms: number, last_used_ms: number | null, uses: number, provenance: string, suspended: string | null,
 *   server_changed: boolean, ending: string | null, unused_days: number | null }} Grant
 *   Kind `declined` is a proposed project that the user declined to grant.
 * @typedef {{ key: string, name: string, servers: string[], live: string[], tools: Record<string, string[]> }} KnownClient
 *   A client that can receive grants. Its key is the program verified by the kernel.
 * @typedef {{ protection: "protecting" | "asking" | "lockdown" | "degraded", pid: number, version: string, started_ms: number,
 *   sessions: number, questions: number, lockdown: boolean, troubles: string[], servers: string[], policy: string,
 *   other_home: string | null }} Status
 * @typedef {{ id: string, sentence: string, line: string | null, session: string, client: string,
 *   expires_ms: number }} Waiting
 *   An open question. It is denied at `expires_ms`.
 * @typedef {{ from_ms: number, quarters: [allowed: number, asked: number, denied: number][] }} Day
 *   Decisions of the last 24 hours: 96 quarter-hours from `from_ms`, which is the start of a quarter-hour. The last
 *   quarter-hour is the current one. A call that required approval counts only as asked.
 * @typedef {{ id: string, session: string, client: string, server: string, tool: string | null, lines: string[], rule: string,
 *   reason: string, since_ms: number | null, kept_seconds: number | null,
 *   state: "waiting" | "missed" | "shown-again" | "allowed-late" }} MissedQuestion
 * @typedef {{ id: string, session: string, client: string, server: string, what: string, note: string | null,
 *   time_ms: number }} Denial
 * @typedef {{ missed: MissedQuestion[], denied: Denial[] }} Questions
 * @typedef {{ status: Status, sessions: Session[], records: SessionRecord[], quarantine: SessionRecord[], grants: Grant[], changed_servers: string[], changed_tools: string[], waiting: Waiting[],
 *   questions: Questions, clients: KnownClient[], recent: Call[], day: Day | null, home: string, shim: string,
 *   appearance: "system" | "light" | "dark", first_run: boolean }} Snapshot
 * @typedef {{ folder: string, there: number, seen: number, said: string }} PrivateFolderAttempt
 *
 * @typedef {{ grant: string, at_ms: number | null, restarted: number, note: string | null, problem: string | null }} RevokedGrant
 * @typedef {{ access: Access[] | null, lifetime: Lifetime | null, part: boolean }} Terms
 *   `part`: true to pick a folder within the granted folder. The picked folder then replaces the granted one.
 * @typedef {{ client: string, server: string, kind: "file" | "folder" | "host" | "tool", what: string, access: Access[],
 *   lifetime: Lifetime }} RequestedGrant
 *
 * @typedef {{ name: string, description: string, then: "allow" | "escalate" | "deny", reason: string, text: string,
 *   decided: number, findings: string[] }} Rule
 * @typedef {{ rules: Rule[], text: string, file: string, own: boolean, findings: string[], counted_since_ms: number,
 *   tools: { server: string, tools: string[] }[], managed: { organization: string, rules: Rule[] } | null }} Rules
 * @typedef {{ server: string, tool: string, arguments: string, client: string | null }} TriedCall
 * @typedef {{ about: string, decision: string, by: string, passed: { rule: string, why: string }[] }} Step
 * @typedef {{ decision: "allow" | "escalate" | "deny", by: string, reason: string, paths: string[], steps: Step[] }} Explained
 * @typedef {{ server: string, tool: string, then: string, now: string, count: number, example: string, reason: string }} Changed
 * @typedef {{ problem: string | null, findings: string[], added: string[], removed: string[], changed: string[],
 *   looser: Changed[], stricter: Changed[], same: number, not_judged: number, calls: number }} DryRun
 *
 * @typedef {{ name: string, description: string | null, command: string, sandboxed: boolean, remote: boolean, reaches: string[],
 *   tools: { name: string, means: string }[], version: string | null, problem: string | null, can_install: boolean,
 *   live: LiveServer[], openings: ServerOpening[], limits: ServerLimit[], secrets: string[], network: Network | null,
 *   suspended?: Suspended | null, can_log_in?: boolean, login?: { issuer: string, scopes: string[], has_ended: boolean } | null,
 *   login_required?: boolean,
 *   changed_tools: ChangedTool[] }} Server
 * @typedef {{ number: number, lines: string[], question: string }} PlannedLogin
 * @typedef {{ change: string, tool: string, state: "suspended" | "new" | "kept" | "removed", hints: string[],
 *   parts: { part: string, words: { is: "same" | "removed" | "added", text: string }[] }[] }} ChangedTool
 *   `change` identifies the definition that is shown.
 * @typedef {{ hosts: string[], asks: boolean }} Network
 *   Hosts that a sandboxed server may reach. `asks` is true if the user is asked about other hosts. Null if the server has no
 *   network or no sandbox.
 * @typedef {{ before: string | null, now: string, change: string, grants: string[], data: string | null, annotated: number,
 *   secrets: string[], found: string }} Suspended
 *   `grants` describes the grants, worst first. The other fields describe the rest of the state that the
 *   previous program left under the name.
 * @typedef {{ kind: "host" | "read" | "write", what: string }} Opening
 * @typedef {{ opening: Opening, words: string }} ServerOpening
 * @typedef {{ kind: "host", host: string } | { kind: "read" } | { kind: "write" }} WantedOpening
 * @typedef {{ limit: string, name: string, unit: string, own: number | null, default: number | null }} ServerLimit
 *   `own` is null if the default applies; `default` is null if there is no limit by default.
 * @typedef {{ differences: { looser: boolean, words: string }[], diff: string }} PlannedLimits
 * @typedef {{ name: string, entry: string }} RemovedServer
 * @typedef {{ name: string, entry: string, clients: string[], profiles: string[], data: string | null }} PlannedRemoval
 * @typedef {{ name: string, servers: string[], missing: string[], clients: string[] }} Profile
 * @typedef {{ server: string, place: string, name: string }} PlainSecret
 * @typedef {{ place: "keyring" | "locked" | "unlocked" | "nowhere", file: string, names: string[] }} Secrets
 * @typedef {{ session: string, client: string, started_ms: number, restarts: number, trouble: string | null }} LiveServer
 * @typedef {{ name: string, command: string, entry: string, reaches: string[], remote: boolean, secrets: Record<string, string>,
 *   plain_values: boolean, kept?: string | null }} PlannedServer
 *   `kept` describes what already exists under this name.
 *   `secrets` has the names of the secrets that store typed values, by bundle setting.
 * @typedef {{ key: string, title: string, about: string, kind: "text" | "number" | "toggle" | "folder" | "file" | "secret",
 *   required: boolean, several: boolean, proposed: string[] }} BundleSetting
 * @typedef {{ file: string, name: string, title: string, about: string, maker: string, settings: BundleSetting[] }} OpenedBundle
 * @typedef {{ id: string, title: string, about: string, why: string, from: string, needs: string | null,
 *   settings: Record<string, string>, package: boolean }} CatalogEntry
 * @typedef {{ servers: Server[], catalog: CatalogEntry[], removed: RemovedServer[], file: string }} Servers
 * @typedef {{ from: string, to: string | null, note: string | null, tools: string[] }} FoundUpdate
 * @typedef {{ tools: { name: string, left_out: string | null, change: string, differs: string[],
 *   arguments: { name: string, roles: string, sure: string, reason: string }[] }[], gone: string[], changes: boolean }} Proposed
 *
 * @typedef {{ id: string, name: string, file: string, problem: string | null, entries: { name: string, way: string, past: boolean, remote: boolean }[],
 *   state: "missing" | "not-connected" | "connected" | "bypassing" | "drifted" | "unreadable" }} FoundClient
 * @typedef {{ file: string, diff: string, servers_diff: string | null, left: string[], secrets: PlainSecret[] }} PlannedChange
 * @typedef {{ kind: "connect" } | { kind: "disconnect" } | { kind: "profile", profile: string }
 *   | { kind: "move", only: string[] | null, secrets: boolean }} ClientWish
 *
 * @typedef {{ text: string, decision: "" | "allow" | "escalate" | "deny", server: string, client: string, path: string,
 *   from_ms: number, to_ms: number }} Wanted
 *   Empty texts and a time of 0 do not filter. Entries at `from_ms` match, entries at `to_ms` do not.
 * @typedef {{ seq: number, time_ms: number, event: string, client: string | null, server: string | null, tool: string | null,
 *   decision: string | null, outcome: string | null, succeeded: boolean | null, summary: string, paths: string[], session: string | null,
 *   verb: string, reason: string }} Call
 *   One call with its decision and outcome, or another entry of the log. `verb` is what it does to its paths, such as
 *   "read", "list", "write", "delete", "move", "run", "connect", "send" or, if that is unknown, "call"; empty for other
 *   entries. `reason` has a few words, such as "you allowed it", "a permission", "rule `work`" or "protected folder".
 * @typedef {{ calls: Call[], next: number | null }} Calls
 *   Newest first. `next` is passed as `before` to get the calls after the last one; null if there are none.
 * @typedef {{ intact: boolean, entries: number, problem: string | null }} LogCheck
 *
 * @typedef {{ deadline_seconds: number, questions_per_minute: number, denial_holds_seconds: number,
 *   notifications: "full" | "plain" | "off", max_sessions: number, keep_days: number, unsandboxed: "enforce" | "warn",
 *   autostart: boolean, appearance: "system" | "light" | "dark", file: string,
 *   managed: ManagedView | null }} Settings
 * @typedef {{ organization: string, revision: string | null, without: "deny" | "ask" | null, problem: string | null, locked: string[],
 *   settings: ManagedSettings, record: "organization" | "chosen" | "nobody" }} ManagedView
 *   `without` is the decision on every call until the rules are downloaded; null if they are, or if there are none.
 *   `record` tells who receives the exported record.
 * @typedef {{ enforce_sandbox: boolean, forbid_unsandboxed: boolean, require_export: boolean, export_url: string | null,
 *   export_paths: ExportedPaths | null, max_grant_minutes: number | null, network: "never" | "ask" | null,
 *   allowed_servers: ServerPattern[] | null, denied_servers: ServerPattern[] }} ManagedSettings
 * @typedef {{ name: string | null, package: string | null, url: string | null }} ServerPattern
 * @typedef {"full" | "hashed" | "none"} ExportedPaths
 * @typedef {{ url: string | null, paths: ExportedPaths, sent: number, not_sent: number, failure: string | null,
 *   managed: { organization: string, url: string | null, paths: ExportedPaths | null, is_missing: boolean, is_required: boolean } | null }} RecordExport
 *   `is_missing`: nothing starts with the current export. `is_required`: the export cannot be turned off.
 *
 * @typedef {{ text: string, tone: "plain" | "strong" | "quiet" | "warn" | "danger" }} Span
 * @typedef {{ words: Span[], note: string | null, notes: Span[] }} QuestionLine
 * @typedef {{ title: string, text: string, diff: boolean }} QuestionText
 * @typedef {"call" | "waiting" | "session" | "pause"} Reach Scope of a denial.
 * @typedef {{ id: string, headline: Span[], host: string | null, notice: string | null, band: string | null, lines: QuestionLine[], with: QuestionLine[], also: string[],
 *   facts: { label: string, lines: Span[][] }[], preview: QuestionText | null, rest: QuestionText | null, details: string,
 *   choices: { label: string, sentence: string }[], times: string[][], denial: string, mirrored: boolean }} QuestionPage
 * @typedef {{ hint: string, filled: number, armed: boolean, ignored: number, againMs: number, clock: string, soon: boolean, allow: string,
 *   outcome: string, more: number }} QuestionChanges
 * @typedef {{ did: "changed" | "moved" | "inside" | "press" | "off-allow" } | { did: "laid-out", above: number, room: number, height: number } | { did: "keyed", on: boolean } | { did: "down" | "up", by: "pointer" | "touch" | "key" }
 *   | { did: "on-allow", x: number, y: number }
 *   | { did: "choose", offer: number, lifetime: number } | { did: "deny", note: string, reach: Reach }} QuestionAct
 */

export {};
