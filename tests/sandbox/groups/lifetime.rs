//! Attempts to keep a process running after the sandbox has exited. The host searches for processes whose arguments
//! contain the scene's name.

use crate::row::{
    Bare::{Holds, Untried},
    Group, Row,
    Sign::{Said, Wrote},
};

pub(crate) const GROUP: Group = Group::new("lifetime", ROWS);

const TOLD: crate::row::Sign = Wrote("work/told");

const ROWS: &[Row] = &[
    Row::new("a child", "$P daemon child $S/escaped", "$P signal-child term $W/told $T", TOLD),
    Row::new("a separate session", "$P daemon session $S/escaped", "$P signal-child term $W/told $T", TOLD),
    Row::new("ignoring signals", "$P daemon deaf $S/escaped", "$P signal-child term $W/told $T", TOLD),
    Row::new("stopped", "$P daemon stopped $S/escaped", "$P signal-child term $W/told $T", TOLD),
    Row::new(
        "started by the shell",
        "nohup $P sleeper $S/escaped >/dev/null 2>&1 & ",
        "sh -c 'cat $0' $R/secret & wait",
        Said,
    ),
    Row::new(
        "started by setsid",
        "setsid -f $P sleeper $S/escaped >/dev/null 2>&1",
        "sh -c 'cat $0' $R/secret & wait",
        Said,
    ),
    Row::new(
        "forked twice",
        "( ( $P sleeper $S/escaped >/dev/null 2>&1 & ) & )",
        "sh -c 'cat $0' $R/secret & wait",
        Said,
    ),
    Row::new(
        "a hundred processes",
        "i=0; while [ $i -lt 30 ]; do $P daemon deaf $S/escaped; i=$((i+1)); done",
        "sh -c 'cat $0' $R/secret & wait",
        Said,
    ),
    Row::new("holding the output", "$P sleeper $S/escaped & echo", "sh -c 'cat $0' $R/secret & wait", Said)
        .bare(Untried),
    Row::new(
        "a scheduled job",
        "echo \"$P sleeper $S/escaped\" | at now; echo \"* * * * * $P sleeper $S/escaped\" | crontab -",
        "cat $R/secret",
        Said,
    )
    .bare(Holds),
    Row::new("a user service", "systemd-run --user $P sleeper $S/escaped", "cat $R/secret", Said).bare(Holds),
];
