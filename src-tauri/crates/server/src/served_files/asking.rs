//! Decides on an access to a file: judges the access, and asks the user if necessary.
//!
//! - An answer applies to the file in the state that the question showed. After the answer, the access is judged again,
//!   and the user is asked again if anything has changed.
//! - A denial applies for the rest of the session to the same kind of access to the path and everything below it.

use super::ServedFiles;
use super::judge::{JudgedAccess, operation};
use super::permissions::{JudgedVersions, PermitResult};
use super::searching::{ReadRole, Search, SearchAnswer};
use crate::run_notes::{calls_in_progress, claimed_reason, waiting_programs};
use ironcurtain_audit::{Entry, Event, PolicyDecision, redacted};
use ironcurtain_consent::found_paths::{cache_around, project_around};
use ironcurtain_consent::{
    CallQuestion, DenialScope, DeniedKey, ExchangeError, Grantable, Inquiry, Lifetime, NotApproved, Offer,
    QuestionKey, Reach, RequestedAccess, SessionDenial, Stop, file_state,
};
use ironcurtain_judging::{allowed_by, denied_by};
use ironcurtain_policy::{AllowedBy, Denial, Escalation, FileWrites, PendingApproval, Permit, Verdict};
use ironcurtain_protocol::RunAsk;
use ironcurtain_sandbox::file_access::{AccessAnswer, FileAccess, PermittedAccess};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

/// Maximum number of times that one access is judged. It is judged again whenever a similar question is answered.
const MAX_ROUNDS: usize = 200;

/// Maximum number of questions about one access. The user is asked again only if the file has changed.
const MAX_QUESTIONS: usize = 3;

/// Reason for denying further files.
const FILE_LIMIT_REACHED: &str = "the sandbox has been allowed too many different files";

/// Access that a program is waiting for.
#[derive(Debug, Clone)]
pub(super) struct AskedByProgram {
    pub(super) wanted: PermittedAccess,
    /// Names of the program and its ancestors, oldest first.
    pub(super) programs: Vec<String>,
}

/// Accesses that a question covers.
pub(super) enum QuestionSubject {
    /// A single access. The receiver, if any, is incremented when a search that may include this read starts.
    SingleFile(Option<watch::Receiver<u64>>),
    /// Accesses to several files in one folder. Contains a sentence that names the files.
    SeveralFiles(String),
    /// No access yet: the question is raised before the program opens the path. Contains the agent's reason, if any.
    BeforeAccess(Option<String>),
}

impl ServedFiles {
    /// Decides on an access. If the access is permitted permanently, the file view has the permission when this method
    /// returns.
    pub(super) async fn decide(self: &Arc<Self>, asked: AskedByProgram) -> AccessAnswer {
        let mut why = None;
        self.pace.acquire().await;
        let answer = self.judge_and_ask(&asked, &mut why).await;
        let allowed = answer != AccessAnswer::Denied;
        if allowed {
            self.pace.refund();
            self.count_allowed(&asked.wanted);
        } else {
            self.notes.denied(&asked.wanted.path, why);
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
            self.services.metrics.count_decision("deny");
        }
        self.services.changed();
        answer
    }

    /// Counts an allowed access, and notes it for the run's last line and for `--learn`.
    pub(super) fn count_allowed(&self, access: &PermittedAccess) {
        self.profile.note(access);
        self.notes.allowed(access);
        self.counts.allowed.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.count_decision("allow");
    }

    /// Decides on an access. For a denial, sets `why`, unless the user has just denied the access.
    async fn judge_and_ask(
        self: &Arc<Self>,
        asked: &AskedByProgram,
        why: &mut Option<String>,
    ) -> AccessAnswer {
        let wanted = &asked.wanted;
        let (mut approved, mut answers) = (Vec::new(), 0);
        for _ in 0..MAX_ROUNDS {
            self.wait_while_frozen().await;
            let Some(judged) = self.judged(wanted, &approved).await else { return AccessAnswer::Denied };
            match &judged.verdict {
                Verdict::Allow(_) if self.services.broker.stops().is_paused(&self.id) => {
                    if self.is_frozen_when_paused {
                        continue;
                    }
                    // A paused server keeps running, so its accesses are denied.
                    let denial = Denial::invalid(Stop::Paused.to_string());
                    self.record_denial(wanted, &denial, &judged).await;
                    *why = Some(denial.reason.to_string());
                    return AccessAnswer::Denied;
                }
                Verdict::Allow(permit) => match self.allow(wanted, permit, &judged).await {
                    Some(answer) => return answer,
                    None => continue,
                },
                Verdict::Deny(denial) => {
                    self.record_denial(wanted, denial, &judged).await;
                    *why = Some(denial.reason.to_string());
                    return AccessAnswer::Denied;
                }
                Verdict::Escalate(escalation) => {
                    // The answer was about a different state of the file, so it does not apply.
                    approved.clear();
                    if answers == MAX_QUESTIONS {
                        return AccessAnswer::Denied;
                    }
                    if self.notes.ask() == RunAsk::Deny {
                        let denial = Denial::invalid("the run was started with `--deny`");
                        self.record_denial(wanted, &denial, &judged).await;
                        return AccessAnswer::Denied;
                    }
                    match self.ask_file_or_folder(asked, escalation, &judged).await {
                        Ok(Some(yes)) => {
                            answers += usize::from(!yes.is_empty());
                            approved = yes;
                        }
                        Ok(None) => {}
                        Err(problem) => {
                            if let ExchangeError::NotApproved(refusal) = problem {
                                *why = Some(refusal)
                                    .filter(|why| *why != NotApproved::Denied)
                                    .map(|why| why.to_string());
                            } else {
                                tracing::error!(%problem, "failed to ask about a file");
                            }
                            return AccessAnswer::Denied;
                        }
                    }
                }
            }
        }
        AccessAnswer::Denied
    }

    /// Asks about this access alone, or about the folder if many reads in it are waiting.
    async fn ask_file_or_folder(
        self: &Arc<Self>,
        asked: &AskedByProgram,
        escalation: &Escalation,
        judged: &JudgedAccess,
    ) -> Result<Option<Vec<PendingApproval>>, ExchangeError> {
        if asked.wanted.access != FileAccess::Read {
            return self.question(asked, escalation, judged, QuestionSubject::SingleFile(None)).await;
        }
        let answer = match self.searches.register(&asked.wanted.path) {
            ReadRole::Alone(waiting) => {
                let search_started = Some(waiting.started.clone());
                return self
                    .question(asked, escalation, judged, QuestionSubject::SingleFile(search_started))
                    .await;
            }
            ReadRole::Joins { answer, is_named } => self.searched(answer, is_named).await,
            ReadRole::Asks(search) => self.search(asked, search).await?,
        };
        match answer {
            SearchAnswer::Again => Ok(None),
            SearchAnswer::Once => Ok(Some(escalation.values.clone())),
            SearchAnswer::Denied => Err(NotApproved::Denied.into()),
        }
    }

    /// Asks once about a folder for which many reads are waiting.
    async fn search(
        self: &Arc<Self>,
        asked: &AskedByProgram,
        search: Search,
    ) -> Result<SearchAnswer, ExchangeError> {
        let folder = PermittedAccess { path: search.folder.clone(), access: FileAccess::Read };
        let Some(judged) = self.judged(&folder, &[]).await else { return Ok(SearchAnswer::Denied) };
        let Verdict::Escalate(escalation) = &judged.verdict else {
            self.searches.is_unaskable(&search.folder);
            search.answer(SearchAnswer::Again);
            return Ok(SearchAnswer::Again);
        };
        let of_folder = AskedByProgram { wanted: folder, programs: asked.programs.clone() };
        let answered = self
            .question(&of_folder, escalation, &judged, QuestionSubject::SeveralFiles(search.waiting()))
            .await;
        let answer = match &answered {
            Ok(Some(values)) if !values.is_empty() => SearchAnswer::Once,
            Ok(_) => SearchAnswer::Again,
            Err(_) => SearchAnswer::Denied,
        };
        search.answer(answer);
        answered.map(|_| answer)
    }

    /// Waits while a run is paused. Its programs are suspended, so the access was requested shortly before, or by a
    /// program that continued.
    async fn wait_while_frozen(&self) {
        if self.is_frozen_when_paused {
            let mut stops = self.services.broker.stops().watch();
            // Ignore the error: the sender is dropped only while the daemon exits.
            let _ = stops.wait_for(|stops| !stops.paused.contains(&self.id)).await;
        }
    }

    /// Records an allowed access. Unless it was approved only once, permits it permanently. Returns `None` if the
    /// access must be judged again.
    async fn allow(
        self: &Arc<Self>,
        wanted: &PermittedAccess,
        permit: &Permit,
        judged: &JudgedAccess,
    ) -> Option<AccessAnswer> {
        let is_standing = permit.allowed_by() != AllowedBy::Answer;
        if is_standing && self.permissions.is_full(wanted) {
            self.record_denial(wanted, &Denial::invalid(FILE_LIMIT_REACHED), judged).await;
            return Some(AccessAnswer::Denied);
        }
        let entry = self.allowed_entry(wanted, permit, judged);
        if let Err(problem) = self.services.audit.record(entry.clone()).await {
            tracing::error!(%problem, "failed to record an allowed access; denying it");
            return Some(AccessAnswer::Denied);
        }
        if !self.services.grants.are_active(permit.grants()) {
            return None;
        }
        self.services.grants.count_use(permit.grants());
        if !is_standing {
            return Some(AccessAnswer::Once);
        }
        let versions = JudgedVersions { grants: judged.grants_version, snapshot: &judged.snapshot };
        let readable = self.readable_folder(wanted, permit).await.map(|folder| (folder, entry));
        match self.permit((wanted.clone(), readable), versions) {
            PermitResult::Permitted => Some(AccessAnswer::Permitted),
            // If there are too many permitted accesses, the next round denies this access.
            PermitResult::Outdated | PermitResult::Full => None,
        }
    }

    fn allowed_entry(&self, wanted: &PermittedAccess, permit: &Permit, judged: &JudgedAccess) -> Entry {
        let reason = permit.reason();
        let mut entry = self.entry(wanted, judged, Event::Decision, "allowed");
        entry.policy_decision =
            Some(PolicyDecision::allow(allowed_by(permit.allowed_by()), &reason.rule, &reason.reason));
        entry.policy_hash = Some(judged.snapshot.hash.clone());
        entry.grant_id = permit.grants().first().cloned();
        entry
    }

    /// Asks the user once. Returns the values approved for this access only, or `None` if the access must be judged
    /// again.
    pub(super) async fn question(
        self: &Arc<Self>,
        AskedByProgram { wanted, programs }: &AskedByProgram,
        escalation: &Escalation,
        judged: &JudgedAccess,
        subject: QuestionSubject,
    ) -> Result<Option<Vec<PendingApproval>>, ExchangeError> {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.count_decision("escalate");
        let exchange = self.services.exchange(&self.principal);
        let JudgedAccess { inspected, snapshot, .. } = judged;
        let requested = inspected.paths.requested(&escalation.values, FileWrites::default());
        // The files are served, so the access needs no mount.
        let requested: Vec<_> =
            requested.into_iter().map(|asked| RequestedAccess { need: None, ..asked }).collect();
        let reads = wanted.access == FileAccess::Read;
        let paths = requested.iter().map(|requested| &requested.path);
        let cache = cache_around(&snapshot.home, paths).filter(|_| reads);
        let grantable = Grantable {
            project: project_around(requested.iter().map(|requested| &requested.path)),
            cache: cache.clone(),
            requested,
            mounts_folders: true,
            ..Grantable::default()
        };
        let tool = operation(wanted.access).name();
        let scope = DenialScope::of_call(tool, &escalation.values, &grantable.requested, |_| true);
        let mut question = CallQuestion {
            id: exchange.new_question_id()?,
            principal: &self.principal,
            tool,
            escalation,
            grantable: &grantable,
            found: &inspected.paths,
            compared: None,
            scope: &scope,
            limits: snapshot.limits(),
            deadline: self.services.config.question_deadline(),
        }
        .build();
        question.also.extend(judged.warning(&wanted.path));
        if judged.runs_later.is_some() {
            retain_lifetimes(&mut question.offers, |lifetime| *lifetime == Lifetime::Once);
        }
        if let QuestionSubject::BeforeAccess(why) = &subject {
            // Without a waiting access, a one-time approval would have no effect.
            retain_lifetimes(&mut question.offers, |lifetime| *lifetime != Lifetime::Once);
            question.with.extend(why.iter().map(|why| claimed_reason(why)));
        }
        retain_lifetimes(&mut question.offers, |lifetime| self.notes.may_offer(lifetime));
        if question.offers.is_empty() {
            return Err(ExchangeError::NoOffer);
        }
        let mut entry = self.entry(wanted, judged, Event::Question, "the user was asked");
        entry.policy_decision = Some(PolicyDecision::escalate(&escalation.by.rule, &escalation.by.reason));
        entry.policy_hash = Some(snapshot.hash.clone());
        let facts: Vec<String> = inspected.paths.iter().map(|found| file_state(&found.path)).collect();
        let denial = SessionDenial::of(&question, scope.clone(), None);
        let identity = QuestionKey::of(&question, &facts);
        if let QuestionSubject::SeveralFiles(files) = &subject {
            question.also.push(files.clone());
            question.fits_a_batch = false;
        }
        question.with.extend(calls_in_progress(&(self.calls)()));
        question.with.extend(waiting_programs(programs));
        // Offer the folder first for a cache, because a program opens many files in it.
        let count_question = self.asked.count_question(&wanted.path);
        if (count_question || cache.is_some())
            && let Some(at) = question.offers.iter().position(|offer| offer.reach == Reach::Folders)
        {
            question.offers.get_mut(..=at).iter_mut().for_each(|offers| offers.rotate_right(1));
        }
        let inquiry = Inquiry {
            identity,
            call: DeniedKey::of(&self.principal, tool, &inspected.arguments),
            question,
            entry,
            scope,
        };
        let search_started = match subject {
            QuestionSubject::SingleFile(search_started) => search_started,
            QuestionSubject::SeveralFiles(_) | QuestionSubject::BeforeAccess(_) => None,
        };
        let open = self.notes.note_pending(&wanted.path, &self.services.broker);
        let answer = exchange.ask(inquiry, self.question_obsolete(wanted, search_started)).await;
        drop(open);
        if matches!(&answer, Err(ExchangeError::NotApproved(why)) if why.is_answer()) {
            self.services.broker.stops().deny(denial);
        }
        let Some(approval) = answer? else { return Ok(None) };
        let now = self.judged(wanted, &[]).await;
        if !now.is_some_and(|now| now.inspected.paths.has_same_kinds(&inspected.paths)) {
            return Ok(None);
        }
        if approval.lifetime == Lifetime::Once {
            return Ok(Some(escalation.values.clone()));
        }
        // From now on, the new grant decides.
        exchange.grant(&approval, grantable.permissions_for(approval.offer.reach)).await?;
        Ok(Some(Vec::new()))
    }

    /// Completes when the access no longer needs its own question because of a new grant, a new policy or a question
    /// about its folder.
    async fn question_obsolete(
        self: &Arc<Self>,
        wanted: &PermittedAccess,
        search_started: Option<watch::Receiver<u64>>,
    ) {
        let mut begins = pin!(async {
            match search_started {
                // Ignore the error, which occurs only if the sandbox has exited.
                Some(mut search_started) => _ = search_started.changed().await,
                None => std::future::pending().await,
            }
        });
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        let is_asked = |judged: &JudgedAccess| matches!(judged.verdict, Verdict::Escalate(_));
        while self.judged(wanted, &[]).await.as_ref().is_some_and(is_asked) {
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
                // The search may include this access.
                () = &mut begins => return,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
        }
    }

    pub(super) async fn record_denial(
        &self,
        wanted: &PermittedAccess,
        denial: &Denial,
        judged: &JudgedAccess,
    ) {
        let mut entry = self.entry(wanted, judged, Event::Decision, "denied");
        entry.policy_decision =
            Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
        entry.policy_hash = Some(judged.snapshot.hash.clone());
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a denied access");
        }
    }

    fn entry(&self, wanted: &PermittedAccess, judged: &JudgedAccess, event: Event, summary: &str) -> Entry {
        let mut entry = self.principal.entry(event, summary);
        entry.tool_name = Some(operation(wanted.access).name().to_owned());
        entry.paths = vec![wanted.path.clone()];
        entry.arguments = Some(redacted(&judged.inspected.arguments));
        entry
    }
}

/// Removes all lifetimes that `accepted` rejects, and then offers that have no lifetime left.
fn retain_lifetimes(offers: &mut Vec<Offer>, accepted: impl Fn(&Lifetime) -> bool) {
    offers.iter_mut().for_each(|offer| offer.lifetimes.retain(&accepted));
    offers.retain(|offer| !offer.lifetimes.is_empty());
}
