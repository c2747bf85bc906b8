//! Commands that show and change the settings: `config.json`, start at login, and the appearance of the window.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use super::managed::ManagedView;
use super::preferences::{Appearance, Preferences};
use crate::autostart;
use crate::consent::NoticeDetail;
use ironcurtain_admin::settings::{ConfigChangeError, change_settings as write_settings};
use ironcurtain_config::Config;
use ironcurtain_config::ConfigError;
use ironcurtain_config::ManagedPolicy;
use ironcurtain_config::SandboxPolicy;
use ironcurtain_config::home::Home;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

#[derive(Debug, Serialize)]
pub(super) struct SettingsView {
    deadline_seconds: u64,
    questions_per_minute: usize,
    denial_holds_seconds: u64,
    notifications: NoticeDetail,
    max_sessions: usize,
    keep_days: u64,
    unsandboxed: &'static str,
    autostart: bool,
    appearance: Appearance,
    file: String,
    /// The user's organization, or `None` if this machine is not managed.
    managed: Option<ManagedView>,
}

/// Settings to change. `None` leaves a setting unchanged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsChanges {
    deadline_seconds: Option<Value>,
    questions_per_minute: Option<Value>,
    denial_holds_seconds: Option<Value>,
    notifications: Option<NoticeDetail>,
    max_sessions: Option<Value>,
    keep_days: Option<Value>,
    unsandboxed: Option<Value>,
    autostart: Option<bool>,
    appearance: Option<Appearance>,
}

/// Reason the settings cannot be shown or changed.
#[derive(Debug, thiserror::Error)]
enum SettingsFailed {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Settings(#[from] ConfigChangeError),
    #[error("failed to write the settings: {0}")]
    Write(#[from] io::Error),
}

pub(super) async fn settings(state: &AppState) -> Result<SettingsView, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || view(&home)).await
}

pub(super) async fn change_settings(
    state: &AppState,
    changes: SettingsChanges,
) -> Result<SettingsView, CommandError> {
    let home = trusted(state)?.home;
    let desktop = state.desktop.clone();
    run_blocking(move || {
        let in_file = [
            ("questionDeadlineSeconds", changes.deadline_seconds),
            ("questionsPerMinute", changes.questions_per_minute),
            ("denialHoldsSeconds", changes.denial_holds_seconds),
            ("maxSessions", changes.max_sessions),
            ("recordKeepDays", changes.keep_days),
            ("sandboxPolicy", changes.unsandboxed),
        ];
        let in_file: Vec<(&str, Value)> =
            in_file.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        if !in_file.is_empty() {
            write_settings(&home, &in_file)?;
        }
        if let Some(on) = changes.autostart {
            autostart::turn(on)?;
        }
        let kept = Preferences::load(&home);
        let chosen = Preferences {
            appearance: changes.appearance.unwrap_or(kept.appearance),
            notifications: changes.notifications.unwrap_or(kept.notifications),
            ..kept
        };
        if chosen != kept {
            chosen.store(&home)?;
            desktop.set_notices(chosen.notifications);
        }
        Ok::<_, SettingsFailed>(view(&home)?)
    })
    .await
}

fn view(home: &Home) -> Result<SettingsView, ConfigError> {
    let config = Config::load(home)?;
    let preferences = Preferences::load(home);
    Ok(SettingsView {
        deadline_seconds: config.question_deadline_seconds,
        questions_per_minute: config.questions_per_minute,
        denial_holds_seconds: config.denial_holds_seconds,
        notifications: preferences.notifications,
        max_sessions: config.max_sessions,
        keep_days: config.record_keep_days,
        unsandboxed: match config.sandbox_policy {
            SandboxPolicy::Enforce => "enforce",
            SandboxPolicy::Warn => "warn",
        },
        autostart: autostart::is_on(),
        appearance: preferences.appearance,
        file: home.config.join("config.json").display().to_string(),
        managed: ManagedPolicy::load(home)?.map(|policy| ManagedView::of(policy, &config)),
    })
}
