//! Reads and presses controls through AT-SPI, as a screen reader does.

use crate::bus::{Bus, Object, wait_for};
use crate::screen::is_titled;
use futures_util::future::{LocalBoxFuture, join_all, join3};
use gtk::glib::Variant;
use gtk::glib::variant::ObjectPath;
use std::collections::HashMap;

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";

/// AT-SPI states that tests read, and their bit numbers.
const STATES: [(&str, u32); 8] = [
    ("active", 1),
    ("checked", 4),
    ("enabled", 8),
    ("focusable", 11),
    ("focused", 12),
    ("sensitive", 24),
    ("showing", 25),
    ("visible", 30),
];

/// AT-SPI roles that tests read, and their numbers.
const ROLES: [(&str, u32); 14] = [
    ("check box", 7),
    ("combo box", 11),
    ("dialog", 16),
    ("frame", 23),
    ("label", 29),
    ("password text", 40),
    ("push button", 43),
    ("radio button", 44),
    ("spin button", 52),
    ("text", 61),
    ("toggle button", 62),
    ("entry", 79),
    ("heading", 83),
    ("link", 88),
];

/// A control as a screen reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Control {
    /// One of [`ROLES`], or an empty string.
    pub(crate) role: &'static str,
    pub(crate) name: String,
    pub(crate) description: String,
    states: Vec<&'static str>,
    /// Position and size on the screen: x, y, width and height.
    pub(crate) place: [i32; 4],
}

impl Control {
    pub(crate) fn is(&self, state: &str) -> bool {
        assert!(STATES.iter().any(|(name, _)| *name == state), "`{state}` is not in the list");
        self.states.contains(&state)
    }
}

/// A node of a window's tree of controls.
struct Node {
    object: Object,
    name: String,
    description: String,
}

/// The accessibility bus of a screen.
pub(crate) struct Accessibility(Bus);

impl Accessibility {
    pub(crate) fn connect(session: &Bus) -> Self {
        let launcher = Object::new("org.a11y.Bus", "/org/a11y/bus");
        let address = wait_for(session.call(&launcher, "org.a11y.Bus", "GetAddress", None));
        let (address,): (String,) = address.expect("at-spi2-core is needed").get().expect("an address");
        Self(Bus::connect(&address))
    }

    /// Returns all controls in windows with a matching title.
    pub(crate) fn controls(&self, title: &str) -> Vec<Control> {
        wait_for(async {
            let nodes = self.nodes(title).await;
            join_all(nodes.into_iter().map(|node| self.control(node))).await
        })
    }

    /// Returns the names of all controls in windows with a matching title.
    pub(crate) fn names(&self, title: &str) -> Vec<String> {
        wait_for(self.nodes(title)).into_iter().map(|node| node.name).collect()
    }

    /// Returns the first control with this name and role. An empty `role` matches any role.
    pub(crate) fn find(&self, title: &str, role: &str, name: &str) -> Option<Control> {
        wait_for(async { Some(self.control(self.first(title, role, name).await?).await) })
    }

    /// Presses a control. Returns `false` if it does not exist or refuses.
    pub(crate) fn press(&self, title: &str, role: &str, name: &str) -> bool {
        wait_for(async {
            let Some(node) = self.first(title, role, name).await else { return false };
            let first = Some((0_i32,).into());
            let done = self.0.call(&node.object, "org.a11y.atspi.Action", "DoAction", first).await;
            done.ok().and_then(|reply| reply.get()) == Some((true,))
        })
    }

    async fn first(&self, title: &str, role: &str, name: &str) -> Option<Node> {
        assert!(
            role.is_empty() || ROLES.iter().any(|(name, _)| *name == role),
            "`{role}` is not in the list"
        );
        for node in self.nodes(title).await.into_iter().filter(|node| node.name == name) {
            if role.is_empty() || self.role(&node.object).await == role {
                return Some(node);
            }
        }
        None
    }

    /// Returns all nodes of windows with a matching title, each before its children.
    async fn nodes(&self, title: &str) -> Vec<Node> {
        let desktop = Object::new("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root");
        let apps = self.children(&desktop).await;
        let windows = join_all(apps.iter().map(|app| self.children(app))).await;
        let windows = windows.into_iter().flatten().map(|window| self.below(window, Some(title)));
        join_all(windows).await.into_iter().flatten().collect()
    }

    /// Returns a node and all nodes below it. Returns an empty list if the node no longer exists or its name does not
    /// match.
    fn below<'a>(&'a self, object: Object, title: Option<&'a str>) -> LocalBoxFuture<'a, Vec<Node>> {
        Box::pin(async move {
            let Some((mut node, count)) = self.node(object).await else { return vec![] };
            if title.is_some_and(|title| !is_titled(&node.name, title)) {
                return vec![];
            }
            if node.name.is_empty() {
                node.name = self.text(&node.object).await;
            }
            let mut children = if count > 0 { self.children(&node.object).await } else { vec![] };
            if count > 0 && children.is_empty() {
                // GTK returns the children of another process only one at a time.
                children = self.child(&node.object).await.into_iter().collect();
            }
            let nodes = join_all(children.into_iter().map(|child| self.below(child, None))).await;
            std::iter::once(node).chain(nodes.into_iter().flatten()).collect()
        })
    }

    /// Returns a node and the number of its children.
    async fn node(&self, object: Object) -> Option<(Node, i32)> {
        let arguments = Some((ACCESSIBLE,).into());
        let reply =
            self.0.call(&object, "org.freedesktop.DBus.Properties", "GetAll", arguments).await.ok()?;
        let (all,): (HashMap<String, Variant>,) = reply.get()?;
        let text = |name: &str| all.get(name).and_then(Variant::str).unwrap_or_default().to_owned();
        let (name, description) = (text("Name"), text("Description"));
        let count = all.get("ChildCount").and_then(Variant::get).unwrap_or_default();
        Some((Node { object, name, description }, count))
    }

    async fn children(&self, object: &Object) -> Vec<Object> {
        let reply = self.0.call(object, ACCESSIBLE, "GetChildren", None).await.ok();
        let children: Option<(Vec<(String, ObjectPath)>,)> = reply.and_then(|reply| reply.get());
        let (children,) = children.unwrap_or_default();
        children.iter().map(|(program, path)| Object::new(program, path.as_str())).collect()
    }

    /// Returns the first child.
    async fn child(&self, object: &Object) -> Option<Object> {
        let first = Some((0_i32,).into());
        let reply = self.0.call(object, ACCESSIBLE, "GetChildAtIndex", first).await.ok()?;
        let ((program, path),): ((String, ObjectPath),) = reply.get()?;
        Some(Object::new(&program, path.as_str()))
    }

    /// Returns the text of a label or paragraph, or an empty string for other controls.
    async fn text(&self, object: &Object) -> String {
        let reply = self.0.call(object, ACCESSIBLE, "GetInterfaces", None).await.ok();
        let interfaces: Option<(Vec<String>,)> = reply.and_then(|reply| reply.get());
        if !interfaces.is_some_and(|(all,)| all.iter().any(|one| one == "org.a11y.atspi.Text")) {
            return String::new();
        }
        let all = Some((0_i32, -1_i32).into());
        let reply = self.0.call(object, "org.a11y.atspi.Text", "GetText", all).await.ok();
        reply.and_then(|reply| reply.get()).map_or_else(String::new, |(text,)| text)
    }

    /// Returns the role, or an empty string if it is not in [`ROLES`].
    async fn role(&self, object: &Object) -> &'static str {
        let reply = self.0.call(object, ACCESSIBLE, "GetRole", None).await.ok();
        let role: Option<(u32,)> = reply.and_then(|reply| reply.get());
        role.and_then(|(role,)| ROLES.iter().find(|(_, number)| *number == role)).map_or("", |(name, _)| name)
    }

    async fn control(&self, node: Node) -> Control {
        let Node { object, name, description } = node;
        let on_screen = Some((0_u32,).into());
        let place = self.0.call(&object, "org.a11y.atspi.Component", "GetExtents", on_screen);
        let states = self.0.call(&object, ACCESSIBLE, "GetState", None);
        let (role, place, states) = join3(self.role(&object), place, states).await;
        let place: Option<((i32, i32, i32, i32),)> = place.ok().and_then(|reply| reply.get());
        let ((x, y, width, height),) = place.unwrap_or_default();
        let states: Option<(Vec<u32>,)> = states.ok().and_then(|reply| reply.get());
        let states = states.and_then(|(states,)| states.first().copied()).unwrap_or_default();
        let states = STATES.iter().filter(|(_, bit)| states >> bit & 1 == 1).map(|(name, _)| *name);
        Control { role, name, description, states: states.collect(), place: [x, y, width, height] }
    }
}
