//! Attempts to write autostart files, which the user's programs run or read later: startup files, hooks, and settings
//! of editors and agents.
//!
//! - The host checks after the sandbox has exited: protected files must be unchanged, and new files must be
//!   quarantined. In the view with only granted paths, files that run only at the user's request are reported and stay
//!   in place.
//! - The working directory is the home directory.

use crate::row::{Group, Row, Sign::Wrote};

pub(crate) const GROUP: Group = Group { persistence: true, ..Group::new("persistence", ROWS) };

/// Minimum number of autostart file names that the scene does not contain yet, for any folder or for the home
/// directory.
const ANY: usize = 30;
const ALL: usize = ANY + 40;

const NEW: crate::row::Sign = Wrote("work/new");
const OBJECT: crate::row::Sign = Wrote("work/.git/objects/new");
const BELOW: crate::row::Sign = Wrote("work/sub/.profile.d");

const AN_OBJECT: &str = "echo $T >$W/.git/objects/new";
const A_FILE: &str = "echo $T >$W/new";
const A_NAME_LIKE_IT: &str = "echo $T >$W/sub/.profile.d";

const ROWS: &[Row] = &[
    Row::new(
        "each name in the session's directory",
        "for n in $L; do f=$W/$n; into $f; echo $M >$f; done",
        "echo $T >$W/.bashrc.txt",
        Wrote("work/.bashrc.txt"),
    )
    .ways(ALL),
    Row::new(
        "each name in a granted directory",
        "for n in $K; do f=$G/$n; into $f; echo $M >$f; done",
        "echo $T >$G/.env",
        Wrote("granted/.env"),
    )
    .ways(ANY),
    Row::new(
        "each name as a directory",
        "for n in $L; do mkdir -p $W/$n && echo $M >$W/$n/x; done",
        "mkdir -p $W/.cache/x && echo $T >$W/.cache/x/y",
        Wrote("work/.cache/x/y"),
    )
    .ways(ALL),
    Row::new(
        "each name in a subdirectory",
        "for n in $K; do f=$W/sub/$n; into $f; echo $M >$f; done",
        A_NAME_LIKE_IT,
        BELOW,
    )
    .ways(ANY),
    Row::new(
        "each name in a new directory",
        "for n in $K; do f=$W/a/b/c/$n; into $f; echo $M >$f; done",
        "mkdir -p $W/a/b && echo $T >$W/a/b/bashrc",
        Wrote("work/a/b/bashrc"),
    )
    .ways(ANY),
    Row::new(
        "each name by renaming",
        "for n in $L; do f=$W/$n; into $f; echo $M >$W/f; $P rename $W/f $f; done; rm -f $W/f",
        "echo $T >$W/f; $P rename $W/f $W/new",
        NEW,
    )
    .ways(ALL),
    Row::new(
        "each name by linking",
        "echo $M >$W/f; for n in $L; do f=$W/$n; into $f; ln $W/f $f; done",
        "echo $T >$W/g; ln $W/g $W/new",
        NEW,
    )
    .ways(ALL),
    Row::new(
        "each name as a symlink",
        "echo $M >$W/f; for n in $K; do f=$W/sub/$n; into $f; ln -s $W/f $f; done",
        "echo $T >$W/new; ln -s new $W/sub/link",
        NEW,
    )
    .ways(ANY),
    Row::new(
        "each name through an unnamed file",
        "for n in $L; do f=$W/$n; into $f; $P tmpfile $W $f $M; done",
        "$P tmpfile $W $W/new $T",
        NEW,
    )
    .ways(ALL),
    Row::new(
        "each name in capital letters",
        "for n in $(echo $K | tr a-z A-Z); do f=$W/sub/$n; into $f; echo $M >$f; done",
        "echo $T >$W/sub/.PROFILE.D",
        Wrote("work/sub/.PROFILE.D"),
    )
    .ways(ANY),
    Row::new(
        "each name in a directory that is then moved",
        "for n in $K; do f=$W/d/$n; into $f; echo $M >$f; done; mv $W/d $W/sub/e",
        "mkdir $W/x; echo $T >$W/x/y; mv $W/x $W/sub/z",
        Wrote("work/sub/z/y"),
    )
    .ways(ANY),
    Row::new(
        "each name through a symlink",
        "ln -s . $W/way; for n in $L; do f=$W/way/$n; into $f; echo $M >$f; done",
        "ln -s . $W/road; echo $T >$W/road/new",
        NEW,
    )
    .ways(ALL),
    Row::new(
        "each name through a descriptor",
        "exec 9<$W; for n in $L; do f=/proc/self/fd/9/$n; into $f; echo $M >$f; done",
        "exec 9<$W; echo $T >/proc/self/fd/9/new",
        NEW,
    )
    .ways(ALL),
    Row::new("a hook", "echo $M >$W/.git/hooks/post-checkout", AN_OBJECT, OBJECT),
    Row::new("an existing hook", "echo $M >>$W/.git/hooks/pre-commit", AN_OBJECT, OBJECT),
    Row::new("the mode of a hook", "chmod 777 $W/.git/hooks/pre-commit", AN_OBJECT, OBJECT),
    Row::new("a hook by renaming", "echo $M >$W/f; $P rename $W/f $W/.git/hooks/pre-commit", AN_OBJECT, OBJECT),
    Row::new("a hook by exchanging", "echo $M >$W/f; $P exchange $W/f $W/.git/hooks/pre-commit", AN_OBJECT, OBJECT),
    Row::new(
        "exchanging the hooks",
        "mkdir $W/h; echo $M >$W/h/pre-commit; $P exchange $W/h $W/.git/hooks",
        AN_OBJECT,
        OBJECT,
    ),
    Row::new("removing a hook", "rm -f $W/.git/hooks/pre-commit; rm -rf $W/.git/hooks", AN_OBJECT, OBJECT),
    Row::new("settings of a repository", "echo $M >>$W/.git/config", AN_OBJECT, OBJECT),
    Row::new("settings through a mapping", "$P write-mapped $W/.git/config $M", AN_OBJECT, OBJECT),
    Row::new("settings by truncating", "$P truncate $W/.git/config", AN_OBJECT, OBJECT),
    Row::new(
        "settings written as git writes them",
        "echo $M >$W/.git/config.lock; $P rename $W/.git/config.lock $W/.git/config",
        AN_OBJECT,
        OBJECT,
    ),
    Row::new(
        "settings through a hard link",
        "ln $W/.git/config $W/c; echo $M >>$W/c",
        "ln $W/file $W/c2; echo $T >>$W/c2",
        Wrote("work/file"),
    ),
    Row::new("settings through a symlink", "ln -s .git/config $W/c; echo $M >>$W/c", AN_OBJECT, OBJECT),
    Row::new(
        "replacing the repository by another",
        "mv $W/.git $W/g; mkdir -p $W/.git/hooks; echo $M >$W/.git/config",
        AN_OBJECT,
        OBJECT,
    ),
    Row::new("removing a repository", "rm -rf $W/.git", A_FILE, NEW).ways(2),
    Row::new("settings elsewhere", "echo $W/sub >$W/.git/commondir", AN_OBJECT, OBJECT),
    Row::new("a repository elsewhere", "mkdir $W/n; echo gitdir: $W/sub >$W/n/.git", A_FILE, NEW),
    Row::new("a repository through a symlink", "mkdir $W/n; ln -s ../sub $W/n/.git", A_FILE, NEW),
    Row::new("settings of a nested repository", "echo $M >>$G/sub/.git/config", "echo $T >$G/sub/.git/HEAD", Wrote("granted/sub/.git/HEAD")),
    Row::new("settings of a repository without a work tree", "echo $M >>$G/bare/config", "echo $T >$G/bare/HEAD", Wrote("granted/bare/HEAD")),
    Row::new(
        "a repository with a `commondir`",
        "mkdir -p $W/d/c/objects $W/d/c/refs; echo ref: refs/heads/m >$W/d/HEAD; echo c >$W/d/commondir; echo $M >$W/d/config.worktree",
        "mkdir $W/notes; echo c >$W/notes/commondir; echo $T >$W/new",
        NEW,
    ),
    Row::new("a hook of a repository without a work tree", "echo $M >$G/bare/hooks/post-update", "echo $T >$G/bare/HEAD", Wrote("granted/bare/HEAD")),
    Row::new(
        "a new repository without a work tree",
        "mkdir -p $W/n/objects $W/n/refs $W/n/hooks; echo $M >$W/n/HEAD; printf \"[core]\\nfsmonitor = $M\\n\" >$W/n/config; echo $M >$W/n/hooks/x",
        "mkdir -p $W/o/objects; echo $T >$W/o/config",
        Wrote("work/o/config"),
    )
    .ways(2),
    Row::new(
        "a new repository with a work tree",
        "mkdir -p $W/n/.git/objects $W/n/.git/refs; echo $M >$W/n/.git/HEAD; printf '[core]\\nfsmonitor = x\\n' >$W/n/.git/config",
        "mkdir -p $W/o/.git/objects; echo $T >$W/o/.git/HEAD",
        Wrote("work/o/.git/HEAD"),
    ),
    Row::new("an editor's tasks", "echo $M >$W/sub/.vscode/tasks.json", A_NAME_LIKE_IT, BELOW),
    Row::new("an editor's settings beside them", "echo $M >$W/sub/.vscode/settings.json", A_NAME_LIKE_IT, BELOW),
    Row::new("replacing their directory", "mv $W/sub/.vscode $W/v; mkdir $W/sub/.vscode; echo $M >$W/sub/.vscode/tasks.json", A_NAME_LIKE_IT, BELOW),
    Row::new("an existing file", "echo $M >>$W/.envrc; echo $M >>$G/sub/.npmrc", A_FILE, NEW).ways(2),
    Row::new("removing an existing file", "rm -f $W/.envrc $G/sub/.npmrc", A_FILE, NEW).ways(2),
    Row::new("the target of a symlink", "echo $M >>$W/.zshrc; echo $M >>$W/real", A_FILE, NEW),
    Row::new("another symlink", "ln -sf file $W/.zshrc", "ln -s file $W/.zsh && echo $T >$W/new", NEW),
    Row::new("its mode and times", "chmod 777 $W/.envrc; touch -d @1 $W/.envrc; $P setxattr $W/.envrc x", "chmod 700 $W/file; echo $T >$W/new", NEW),
    Row::new(
        "hiding it in many directories",
        "i=0; while [ $i -lt 200 ]; do mkdir -p $W/m/$i; i=$((i+1)); done; echo $M >$W/m/177/.envrc",
        A_FILE,
        NEW,
    ),
    Row::new(
        "a directory that cannot be entered",
        "mkdir -p $W/n/o; echo $M >$W/n/o/.envrc; chmod 000 $W/n/o $W/n",
        A_FILE,
        NEW,
    ),
    Row::new(
        "a name that is not UTF-8",
        "d=$W/$(printf 'x\\377'); mkdir $d; echo $M >$d/.envrc",
        A_FILE,
        NEW,
    ),
];
