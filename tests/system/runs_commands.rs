//! Common commands in a run: commands that only list files raise no question. Commands that open files raise a question
//! and then succeed.

use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::Reach;

/// Creates a test environment with a high limit on the number of questions.
pub fn world() -> World {
    let world = World::with(|world| {
        let settings = r#"{ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 }"#;
        std::fs::write(world.home.config.join("config.json"), settings).unwrap();
    });
    world.file("project/own", "own\n");
    world
}

/// A command that uses the files in `$D`.
struct Case {
    command: &'static str,
    /// Expected output.
    output: &'static str,
    /// Files that exist afterwards, with their contents.
    leaves: &'static [(&'static str, &'static str)],
    /// Files that do not exist afterwards.
    removes: &'static [&'static str],
}

const fn looks(command: &'static str, output: &'static str) -> Case {
    Case { command, output, leaves: &[], removes: &[] }
}

const fn changes(command: &'static str, leaves: &'static [(&'static str, &'static str)]) -> Case {
    Case { command, output: "", leaves, removes: &[] }
}

/// Files that exist before each case.
const FILES: [(&str, &str); 10] = [
    ("a", "two\none\n"),
    ("b", "two\nthree\n"),
    ("sub/c", "see one\n"),
    ("x.c", "#include \"x.h\"\nint main(void) { return X; }\n"),
    ("inc/x.h", "#define X 7\n"),
    ("x.js", "console.log(require('./y.js').y)\n"),
    ("y.js", "exports.y = 'from y'\n"),
    ("x.py", "import os\nprint(open(os.path.dirname(os.path.abspath(__file__)) + '/a').read(), end='')\n"),
    ("build.mk", "out: a\n\t@cp a out; cat out\n"),
    ("change.diff", "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-two\n+2\n one\n"),
];

const LOOKING: [Case; 7] = [
    looks("ls $D/sub $D/inc | tr '\\n' ' ' | sed 's,[^ ]*/,,g'", "inc: x.h  sub: c "),
    looks("[ -f $D/a ] && [ ! -e $D/missing ] && echo yes", "yes\n"),
    looks("find $D -name 'x.*' -type f -printf '%f %s\\n' | sort", "x.c 44\nx.h 12\nx.js 33\nx.py 88\n"),
    looks("stat -c '%s %F' $D/a", "8 regular file\n"),
    looks("test -d $D/sub && test -r $D/a && test ! -x $D/a && echo yes", "yes\n"),
    looks("realpath --relative-to=$D $D/sub/../a", "a\n"),
    looks("du -b $D/inc/x.h | cut -f 1", "12\n"),
];

const READING: [Case; 16] = [
    looks("cat $D/a $D/b", "two\none\ntwo\nthree\n"),
    looks("head -n 1 $D/a; tail -n 1 $D/a", "two\none\n"),
    looks("wc -l < $D/a", "2\n"),
    looks("sort $D/a", "one\ntwo\n"),
    looks("diff $D/a $D/b", "2c2\n< one\n---\n> three\n"),
    looks("grep -rh one $D/sub", "see one\n"),
    looks("rg --no-filename one $D/sub/c", "see one\n"),
    looks("md5sum < $D/a", "978f9ed6df6727336bf47dac511c999f  -\n"),
    looks("awk 'NR == 2' $D/a", "one\n"),
    looks("gcc -I$D/inc -o /tmp/x $D/x.c && /tmp/x; echo $?", "7\n"),
    looks("node $D/x.js", "from y\n"),
    looks("/usr/bin/python3 -B $D/x.py", "two\none\n"),
    looks("tar -C $D -cf - a sub | tar -xOf - sub/c", "see one\n"),
    looks("cp $D/a /tmp/copied && cat /tmp/copied", "two\none\n"),
    looks("while read line; do echo \"$line\"; done < $D/b", "two\nthree\n"),
    looks("gzip -c $D/a | gzip -dc", "two\none\n"),
];

const CHANGING: [Case; 23] = [
    changes("echo new > $D/n", &[("n", "new\n")]),
    changes("echo more >> $D/a", &[("a", "two\none\nmore\n")]),
    changes("cp $D/a $D/copy", &[("copy", "two\none\n")]),
    Case { command: "mv $D/a $D/moved", output: "", leaves: &[("moved", "two\none\n")], removes: &["a"] },
    Case {
        command: "mv $D/sub $D/other",
        output: "",
        leaves: &[("other/c", "see one\n")],
        removes: &["sub"],
    },
    changes("sed -i s/two/2/ $D/a", &[("a", "2\none\n")]),
    changes("vim -N -u NONE -es -c '%s/two/2/' -c wq $D/a", &[("a", "2\none\n")]),
    changes("printf '%s\\n' '1s/two/2/' w q | ed -s $D/a", &[("a", "2\none\n")]),
    changes("patch -s $D/a $D/change.diff", &[("a", "2\none\n")]),
    changes("touch $D/empty", &[("empty", "")]),
    changes("mkdir -p $D/deep/er && echo x > $D/deep/er/f", &[("deep/er/f", "x\n")]),
    Case { command: "rm -r $D/sub", output: "", leaves: &[], removes: &["sub"] },
    changes("echo x | tee $D/t > /dev/null", &[("t", "x\n")]),
    changes("dd if=$D/a of=$D/dd bs=3 count=1 status=none", &[("dd", "two")]),
    changes("install -m 600 $D/a $D/installed", &[("installed", "two\none\n")]),
    changes("ln $D/a $D/linked", &[("linked", "two\none\n")]),
    changes("ln -s a $D/symbolic", &[("symbolic", "two\none\n")]),
    changes("sort -o $D/a $D/a", &[("a", "one\ntwo\n")]),
    changes("truncate -s 3 $D/a", &[("a", "two")]),
    Case { command: "gzip $D/a && gzip -dc $D/a.gz", output: "two\none\n", leaves: &[], removes: &["a"] },
    Case {
        command: "make -s -C $D -f build.mk",
        output: "two\none\n",
        leaves: &[("out", "two\none\n")],
        removes: &[],
    },
    Case {
        command: "sqlite3 $D/db 'create table t (x); insert into t values (5); select x from t'",
        output: "5\n",
        leaves: &[],
        removes: &["db-journal"],
    },
    Case {
        command: "(cd $D && zip -q z.zip a && unzip -p z.zip a)",
        output: "two\none\n",
        leaves: &[],
        removes: &[],
    },
];

/// Runs each command twice: with relative paths in the files' folder, and with absolute paths in `/`.
fn run(cases: &[Case], asks: bool) {
    let world = world();
    let mut shell = Shell::start(&world, &world.path("project"));
    for (number, case) in cases.iter().enumerate() {
        for from in ["its folder", "the root"] {
            let name = format!("c/{number}{}", from.len());
            for (file, content) in FILES {
                world.file(&format!("{name}/{file}"), content);
            }
            let folder = world.path(&name);
            (0..20).for_each(|_| world.user.will(Next::AllowFirst(vec![Reach::Paths])));
            let (at, d) = if from == "the root" {
                ("/", folder.to_str().unwrap())
            } else {
                (folder.to_str().unwrap(), ".")
            };
            let said = shell.run(&format!("(cd {at} && D={d} && {})", case.command));
            let what = format!("{} from {from}", case.command);
            let (output, status) = said.rsplit_once("status ").unwrap();
            assert_eq!(output, case.output, "{what}");
            assert!(status == "0\n" || case.command.starts_with("diff"), "{what}: {said}");
            for (file, content) in case.leaves {
                assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), *content, "{what}");
            }
            for file in case.removes {
                assert!(!folder.join(file).exists(), "{what}: {file}");
            }
            let asked = world.user.asked().len();
            assert_eq!(asked > 0, asks, "{what}: {asked} questions");
            world.user.forget();
        }
    }
    assert_eq!(shell.exit(), Some(0));
}

#[test]
fn commands_that_only_list_files_do_not_ask() {
    run(&LOOKING, false);
}

#[test]
fn commands_that_read_ask_and_succeed() {
    run(&READING, true);
}

#[test]
fn commands_that_change_ask_and_succeed() {
    run(&CHANGING, true);
}

#[test]
fn permissions_and_times_change_after_a_question() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    let file = world.file("docs/a", "a");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::AllowFirst(vec![Reach::Paths]));
    assert_eq!(shell.run("chmod 640 ~/docs/a && touch -d @1000 ~/docs/a"), "status 0\n");
    let facts = std::fs::metadata(&file).unwrap();
    assert_eq!(
        (
            facts.permissions().mode() & 0o777,
            facts.modified().unwrap().elapsed().unwrap().as_secs() > 1_000_000
        ),
        (0o640, true)
    );
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn git_adds_and_commits_in_a_served_repository() {
    let world = world();
    world.file("repo/a", "a\n");
    let repository = world.path("repo");
    let git = |arguments: &[&str]| {
        let output =
            std::process::Command::new("git").arg("-C").arg(&repository).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "first"]);
    let mut shell = Shell::start(&world, &world.path("project"));
    (0..60).for_each(|_| world.user.will(Next::AllowFirst(vec![Reach::Folders, Reach::Paths])));
    let inside = "git -c safe.directory='*' -c user.name=a -c user.email=a@b.c -c gc.auto=0";
    assert_eq!(
        shell.run(&format!("cd ~/repo && {inside} add a && {inside} commit -q -m second")),
        "status 0\n"
    );
    assert_eq!(git(&["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(git(&["status", "--short"]), "");
    assert!(!world.user.asked().is_empty());
}
