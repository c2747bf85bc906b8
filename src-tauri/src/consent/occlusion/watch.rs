//! Watches the stacking order of an X11 screen on its own thread and connection.
//!
//! - Reports the dialog's visibility after each change, and on request before a press is accepted.
//! - INVARIANT: a request waits at most [`REPLY_TIMEOUT`]. Without a reply, the dialog counts as covered.
//! - Stops, without further reports or replies, when its [`OcclusionWatch`] is dropped or the connection to the X server
//!   breaks.

use super::{Area, InView, MAX_WINDOWS, UpperWindow, in_view, is_foreign};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::ReplyError;
use x11rb::protocol::randr::ConnectionExt as _;
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConnectionExt as _, EventMask, MapState, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// Maximum time to wait for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_millis(150);
/// Minimum interval between checks while the screen keeps changing.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(40);
/// Maximum number of windows between the dialog and the root window: the window manager's frame and its parents.
const MAX_FRAMES: usize = 16;

/// Handle to the thread that watches the windows above a dialog. Dropping it stops the thread.
pub(in crate::consent) struct OcclusionWatch {
    /// Socket for one-byte requests. Closing it stops the thread.
    ask: UnixStream,
    /// Receiver of replies. Each reply contains the number of requests read before the check, and the dialog's
    /// visibility.
    answers: Receiver<(usize, InView)>,
    requests: Cell<usize>,
}

/// State of the watching thread.
struct Watcher {
    screen: RustConnection,
    root: Window,
    dialog: Window,
    has_shapes: bool,
    requests: UnixStream,
    answers: Sender<(usize, InView)>,
}

impl OcclusionWatch {
    /// Starts watching the windows above the window `dialog`. Calls `report` on the watching thread after each change.
    pub(in crate::consent) fn start(
        display: &str,
        dialog: u32,
        report: impl Fn(InView) + Send + 'static,
    ) -> io::Result<Self> {
        let (screen, number) = RustConnection::connect(Some(display)).map_err(io::Error::other)?;
        let root = screen.setup().roots.get(number).ok_or(io::ErrorKind::NotFound)?.root;
        if is_within_wayland(&screen, root) {
            return Err(io::Error::other("this X server runs within Wayland"));
        }
        let (ask, requests) = UnixStream::pair()?;
        requests.set_nonblocking(true)?;
        ask.set_nonblocking(true)?;
        let (answers, told) = channel();
        let has_shapes =
            screen.extension_information(shape::X11_EXTENSION_NAME).is_ok_and(|found| found.is_some());
        let watcher = Watcher { screen, root, dialog, has_shapes, requests, answers };
        std::thread::Builder::new().name("covers".into()).spawn(move || {
            if let Err(error) = watcher.follow(&report) {
                tracing::warn!(%error, "stopped detecting windows above the dialog");
                report(InView::Covered);
            }
        })?;
        Ok(Self { ask, answers: told, requests: Cell::new(0) })
    }

    /// Returns the current visibility of the dialog.
    pub(in crate::consent) fn visibility(&self) -> InView {
        let number = self.requests.get() + 1;
        self.requests.set(number);
        let until = Instant::now() + REPLY_TIMEOUT;
        if (&self.ask).write_all(&[0]).is_err() {
            return InView::Covered;
        }
        // Skips late replies to earlier requests.
        std::iter::from_fn(|| self.answers.recv_timeout(until.saturating_duration_since(Instant::now())).ok())
            .find_map(|(answered, in_view)| (answered >= number).then_some(in_view))
            .unwrap_or(InView::Covered)
    }
}

impl Watcher {
    /// Checks the visibility after every change and request, until the requesting end is closed.
    fn follow(&self, report: &impl Fn(InView)) -> Result<(), ReplyError> {
        let events = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::STRUCTURE_NOTIFY;
        let wanted = ChangeWindowAttributesAux::new().event_mask(events);
        self.screen.change_window_attributes(self.root, &wanted)?.check()?;
        let (mut told, mut requests, mut answered) = (None, 0, 0);
        let mut changed = Some(Instant::now());
        loop {
            while self.screen.poll_for_event()?.is_some() {
                changed.get_or_insert(Instant::now() + MIN_CHECK_INTERVAL);
            }
            match self.new_requests()? {
                Some(more) => requests += more,
                None => return Ok(()),
            }
            if requests > answered || changed.is_some_and(|due| due <= Instant::now()) {
                changed = None;
                let now = self.visibility()?;
                if told.replace(now) != Some(now) {
                    report(now);
                }
                if requests > std::mem::replace(&mut answered, requests) {
                    // If the receiver was dropped, the next read reaches EOF.
                    let _ = self.answers.send((requests, now));
                }
                continue;
            }
            self.wait(changed.map(|due| due.saturating_duration_since(Instant::now())))?;
        }
    }

    /// Waits until an event or a request arrives or `time` has passed.
    fn wait(&self, time: Option<Duration>) -> io::Result<()> {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let mut ends =
            [PollFd::new(self.screen.stream(), PollFlags::IN), PollFd::new(&self.requests, PollFlags::IN)];
        match poll(&mut ends, time.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the number of new requests, or `None` if the requesting end was closed.
    fn new_requests(&self) -> io::Result<Option<usize>> {
        match (&self.requests).read(&mut [0; 64]) {
            Ok(0) => Ok(None),
            Ok(number) => Ok(Some(number)),
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) => {
                Ok(Some(0))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the visibility of the dialog in the current stacking order.
    fn visibility(&self) -> Result<InView, ReplyError> {
        match self.query_visibility() {
            // A window, possibly the dialog itself, was closed during the check. The resulting event soon triggers
            // another check.
            Err(ReplyError::X11Error(_)) => Ok(InView::Covered),
            looked => looked,
        }
    }

    fn query_visibility(&self) -> Result<InView, ReplyError> {
        let attributes = self.screen.get_window_attributes(self.dialog)?;
        let geometry = self.screen.get_geometry(self.dialog)?;
        let origin = self.screen.translate_coordinates(self.dialog, self.root, 0, 0)?;
        if attributes.reply()?.map_state != MapState::VIEWABLE {
            return Ok(InView::Covered);
        }
        let (geometry, origin) = (geometry.reply()?, origin.reply()?);
        let dialog = Area {
            x: origin.dst_x.into(),
            y: origin.dst_y.into(),
            width: geometry.width.into(),
            height: geometry.height.into(),
        };
        let Some(candidates) = self.candidates()? else { return Ok(InView::Covered) };
        let mut above = Vec::new();
        for (parent, windows) in candidates {
            above.extend(self.windows(parent, &windows, dialog)?);
        }
        Ok(in_view(dialog, &self.screens()?, &above))
    }

    /// Returns other clients' windows above or inside the dialog, by parent window, or `None` if there are too many.
    fn candidates(&self) -> Result<Option<HashMap<Window, Vec<Window>>>, ReplyError> {
        let mask = self.screen.setup().resource_id_mask;
        let is_foreign = |id: &Window| is_foreign(*id, self.dialog, mask);
        let mut inner = self.dialog;
        let mut tree = self.screen.query_tree(inner)?.reply()?;
        let mut candidates = HashMap::new();
        candidates.insert(inner, tree.children.iter().copied().filter(is_foreign).collect::<Vec<_>>());
        for _ in 0..MAX_FRAMES {
            if inner == self.root {
                let count: usize = candidates.values().map(Vec::len).sum();
                return Ok(Some(candidates).filter(|_| count <= MAX_WINDOWS));
            }
            let parent = tree.parent;
            tree = self.screen.query_tree(parent)?.reply()?;
            // Children are sorted from bottom to top.
            let above = tree.children.iter().copied().skip_while(|id| *id != inner).skip(1);
            candidates.insert(parent, above.filter(is_foreign).collect());
            inner = parent;
        }
        Ok(None)
    }

    /// Queries all of these windows at once. Skips windows that have been closed.
    fn windows(
        &self,
        parent: Window,
        windows: &[Window],
        dialog: Area,
    ) -> Result<Vec<UpperWindow>, ReplyError> {
        if windows.is_empty() {
            return Ok(Vec::new());
        }
        let origin = self.screen.translate_coordinates(parent, self.root, 0, 0)?;
        let mut requests = Vec::with_capacity(windows.len());
        for window in windows {
            let attributes = self.screen.get_window_attributes(*window)?;
            requests.push((*window, attributes, self.screen.get_geometry(*window)?));
        }
        let origin = origin.reply()?;
        let mut all = Vec::new();
        for (window, attributes, geometry) in requests {
            let (Some(attributes), Some(geometry)) =
                (existing(attributes.reply())?, existing(geometry.reply())?)
            else {
                continue;
            };
            let border = i32::from(geometry.border_width);
            let area = Area {
                x: i32::from(origin.dst_x) + i32::from(geometry.x),
                y: i32::from(origin.dst_y) + i32::from(geometry.y),
                width: i32::from(geometry.width) + 2 * border,
                height: i32::from(geometry.height) + 2 * border,
            };
            let mut above = UpperWindow {
                is_shown: attributes.map_state == MapState::VIEWABLE,
                draws: attributes.class == WindowClass::INPUT_OUTPUT,
                areas: vec![area],
            };
            if above.is_shown && above.draws && area.overlaps(dialog) && self.has_shapes {
                above.areas = self.shape(window, area, border)?;
            }
            all.push(above);
        }
        Ok(all)
    }

    /// Returns the screen areas covered by a shaped window.
    fn shape(&self, window: Window, area: Area, border: i32) -> Result<Vec<Area>, ReplyError> {
        let requests = self.screen.shape_get_rectangles(window, shape::SK::BOUNDING)?;
        let Some(shape) = existing(requests.reply())? else { return Ok(vec![]) };
        let part = |part: &x11rb::protocol::xproto::Rectangle| Area {
            x: area.x + border + i32::from(part.x),
            y: area.y + border + i32::from(part.y),
            width: part.width.into(),
            height: part.height.into(),
        };
        Ok(shape.rectangles.iter().map(part).collect())
    }

    /// Returns the screens of the root window, or the whole root window if they are unknown.
    fn screens(&self) -> Result<Vec<Area>, ReplyError> {
        let monitors =
            self.screen.randr_get_monitors(self.root, true).ok().and_then(|requests| requests.reply().ok());
        let monitors = monitors.map(|told| told.monitors).unwrap_or_default();
        if monitors.is_empty() {
            let root = self.screen.get_geometry(self.root)?.reply()?;
            return Ok(vec![Area { x: 0, y: 0, width: root.width.into(), height: root.height.into() }]);
        }
        let area = |one: &x11rb::protocol::randr::MonitorInfo| Area {
            x: one.x.into(),
            y: one.y.into(),
            width: one.width.into(),
            height: one.height.into(),
        };
        Ok(monitors.iter().map(area).collect())
    }
}

/// Returns `true` if this X server runs inside a Wayland session. The stacking order then lacks the Wayland windows.
fn is_within_wayland(screen: &RustConnection, root: Window) -> bool {
    let names = || -> Result<Vec<Vec<u8>>, ReplyError> {
        let resources = screen.randr_get_screen_resources_current(root)?.reply()?;
        let outputs = resources.outputs.iter().map(|output| {
            Ok(screen.randr_get_output_info(*output, resources.config_timestamp)?.reply()?.name)
        });
        outputs.collect()
    };
    // Newer versions of Xwayland have this extension. Older versions are recognized only by their output names.
    screen.extension_information("XWAYLAND").is_ok_and(|found| found.is_some())
        || names().is_ok_and(|names| names.iter().any(|name| name.starts_with(b"XWAYLAND")))
}

/// Returns a reply about a window, or `None` if the window no longer exists.
fn existing<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ReplyError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(broken) => Err(broken),
    }
}
