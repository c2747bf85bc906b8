//! Attempts to use too many resources. A file on the host records the amount used.

use crate::{
    launch::LIMITS,
    row::{Bare::Untried, Group, Row, Sign::Said, Views::Both},
    scene::Scene,
};

pub(crate) const GROUP: Group = Group { victim: true, ..Group::new("load", ROWS) };

const fn load(name: &'static str, attack: &'static str, twin: &'static str) -> Row {
    Row::new(name, attack, twin, Said).bare(Untried).only(Both)
}

const ROWS: &[Row] = &[
    load("processes", "$P fork 3000 $W/count", "sh -c 'cat $0' $R/secret").also(too_many_processes),
    load("threads", "$P threads 3000 $W/count", "sh -c 'cat $0' $R/secret").also(too_many_processes),
    load("zombie processes", "$P zombies 3000; true", "sh -c 'cat $0' $R/secret"),
    load("open files", "$P open 3000 $W/count", "exec 9<$R/secret; cat <&9").also(too_many_files),
    load("a large file", "$P fill $W/large 64 $W/count", "cp $R/secret $W/s; cat $W/s").also(too_large),
    load(
        "the temporary directory",
        "$P fill /tmp/large 64 $W/count",
        "rm -f /tmp/large; cp $R/secret /tmp/s; cat /tmp/s",
    )
    .also(too_full),
    load(
        "files in shared memory",
        "$P fill /dev/shm/large 64 $W/count",
        "cp $R/secret /dev/shm/s; cat /dev/shm/s",
    )
    .also(too_full),
    load(
        "many files in the temporary directory",
        "i=0; while [ $i -lt 8 ]; do $P fill /tmp/large$i 4 $W/count$i; i=$((i+1)); done",
        "cp $R/secret /tmp/s; cat /tmp/s",
    ),
    load("memory", "$P eat 1024 $W/count", "cat $R/secret").also(too_much_memory),
];

fn more_than(scene: &Scene, limit: Option<u64>) -> Option<String> {
    let Some(count) = scene.text("work/count").and_then(|count| count.parse::<u64>().ok()) else {
        return Some("nothing was counted".to_owned());
    };
    (count > limit.unwrap()).then(|| format!("it got {count} of {limit:?}"))
}

fn too_many_processes(scene: &Scene) -> Option<String> {
    // The kernel does not apply this limit to root, so root needs a control group.
    if ironcurtain_testkit::programs::is_root() { None } else { more_than(scene, LIMITS.processes) }
}

fn too_many_files(scene: &Scene) -> Option<String> {
    more_than(scene, LIMITS.open_files)
}

fn too_large(scene: &Scene) -> Option<String> {
    more_than(scene, LIMITS.file_size.map(|bytes| bytes >> 20))
}

fn too_full(scene: &Scene) -> Option<String> {
    more_than(scene, LIMITS.tmp_size.map(|bytes| bytes >> 20))
}

fn too_much_memory(scene: &Scene) -> Option<String> {
    more_than(scene, LIMITS.memory.map(|bytes| bytes >> 20))
}
