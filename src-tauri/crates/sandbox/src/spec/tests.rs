//! Tests of the validation and the serialized form of a specification.

use super::*;

#[test]
fn accepts_only_normal_paths() {
    assert!(is_normal("/a/b c/.d"));
    for bad in ["", "a", "/", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a\0b"] {
        assert!(!is_normal(bad), "{bad:?}");
    }
}

#[test]
fn validate_names_each_error() {
    assert_eq!(spec().validate(), Ok(()));
    assert_eq!(Spec { argv: vec![], ..spec() }.validate(), Err(SpecError::NoProgram));
    let mounts = vec![Mount::new("/a/../b", MountAccess::ReadOnly)];
    assert_eq!(Spec { mounts, ..spec() }.validate(), Err(SpecError::Path("/a/../b".into())));
    assert_eq!(Spec { state_dir: "state".into(), ..spec() }.validate(), Err(SpecError::Path("state".into())));
    let env = BTreeMap::from([("A=B".to_owned(), String::new())]);
    assert_eq!(Spec { env, ..spec() }.validate(), Err(SpecError::Environment("A=B".into())));
    let deny_read = vec!["~/.ssh".into()];
    let view = View::HostRead {
        session_dir: None,
        deny_read,
        allow_read: vec![],
        allow_write: vec![],
        deny_write: vec![],
        private_tmp: true,
    };
    assert_eq!(Spec { view, ..spec() }.validate(), Err(SpecError::Path("~/.ssh".into())));
    let argv = vec!["a".into(), "b\0".into()];
    assert_eq!(Spec { argv, ..spec() }.validate(), Err(SpecError::Argument("b\\u{0}".into())));
}

#[test]
fn serialized_form_is_stable() {
    let text = r#"{"argv":["true"],"env":{},"view":{"kind":"roots","sessionDir":"/s","programs":[]},"mounts":[],"closed":[],"network":"none","limits":{"memory":4294967296,"cpu":null,"processes":1024,"openFiles":4096,"fileSize":null,"tmpSize":1073741824},"stateDir":"/state","allowRoot":false}"#;
    assert_eq!(serde_json::to_string(&spec()).unwrap(), text);
    assert_eq!(serde_json::from_str::<Spec>(text).unwrap(), spec());
}

fn spec() -> Spec {
    Spec {
        argv: vec!["true".into()],
        env: BTreeMap::new(),
        cwd: None,
        home: None,
        view: View::Roots { session_dir: "/s".into(), programs: vec![] },
        mounts: vec![],
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits::default(),
        state_dir: "/state".into(),
        allow_root: false,
    }
}
