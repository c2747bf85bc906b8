//! Icons of the agent and its server, as in the window.
//!
//! - An agent's icon shows its initials on a colour derived from its name. The icon does not prove the agent's
//!   identity. The text beside it states the verified facts.

use super::rows;
use crate::consent::view::ServerIcon;
use gtk::prelude::*;
use gtk::{Align, cairo, glib};
use std::f64::consts::PI;

/// Size of an agent's icon in pixels.
const AGENT: i32 = 48;
/// Size of a server's icon in pixels, and of the grid on which it is drawn.
const SERVER: i32 = 16;
const GRID: f64 = 24.0;
/// Suffixes of the style classes for the colours of agent icons.
const HUES: [char; 8] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/// Creates the icon of the agent with this name.
pub(super) fn agent(name: &str) -> gtk::Label {
    let icon = gtk::Label::new(Some(&initials(name)));
    icon.set_size_request(AGENT, AGENT);
    icon.set_halign(Align::Start);
    icon.set_valign(Align::Start);
    icon.style_context().add_class("ic-agent");
    icon.style_context().add_class(&format!("ic-hue-{}", hue(name)));
    rows::describe(&icon, name, "");
    icon
}

/// Creates the band that names a remote machine, in a colour derived from the text.
pub(super) fn host(text: &str) -> gtk::Label {
    let band = rows::wrapped(text, rows::WIDE);
    band.style_context().add_class("ic-host");
    band.style_context().add_class(&format!("ic-hue-{}", hue(text)));
    band
}

/// Creates a server's icon in the colour of the surrounding text.
pub(super) fn server(sign: ServerIcon) -> gtk::DrawingArea {
    let icon = gtk::DrawingArea::new();
    icon.set_size_request(SERVER, SERVER);
    icon.set_valign(Align::Start);
    rows::describe(&icon, "Server", "");
    icon.connect_draw(move |icon, canvas| {
        let ink = icon.style_context().color(icon.state_flags());
        canvas.set_source_rgba(ink.red(), ink.green(), ink.blue(), ink.alpha());
        if let Err(error) = draw(canvas, sign) {
            tracing::debug!(%error, "failed to draw a server icon");
        }
        glib::Propagation::Proceed
    });
    icon
}

fn draw(canvas: &cairo::Context, sign: ServerIcon) -> Result<(), cairo::Error> {
    canvas.scale(f64::from(SERVER) / GRID, f64::from(SERVER) / GRID);
    canvas.set_line_width(2.0);
    canvas.set_line_cap(cairo::LineCap::Round);
    canvas.set_line_join(cairo::LineJoin::Round);
    match sign {
        ServerIcon::Sandboxed => {
            canvas.move_to(12.0, 2.5);
            canvas.line_to(20.0, 5.5);
            canvas.line_to(20.0, 13.0);
            canvas.curve_to(20.0, 18.0, 16.0, 20.5, 12.0, 22.0);
            canvas.curve_to(8.0, 20.5, 4.0, 18.0, 4.0, 13.0);
            canvas.line_to(4.0, 5.5);
            canvas.close_path();
            lines(canvas, &[(9.0, 12.0), (11.0, 14.0), (15.0, 10.0)]);
        }
        ServerIcon::Open => {
            lines(canvas, &[(12.0, 3.0), (22.0, 20.0), (2.0, 20.0)]);
            canvas.close_path();
            lines(canvas, &[(12.0, 9.0), (12.0, 13.0)]);
            lines(canvas, &[(12.0, 17.0), (12.0, 17.0)]);
        }
        ServerIcon::Remote => {
            canvas.arc(9.0, 13.0, 6.0, PI / 2.0, PI * 1.75);
            canvas.arc(17.5, 14.5, 4.5, -PI / 2.0, PI / 2.0);
            canvas.close_path();
        }
    }
    canvas.stroke()
}

fn lines(canvas: &cairo::Context, points: &[(f64, f64)]) {
    canvas.new_sub_path();
    points.iter().for_each(|(x, y)| canvas.line_to(*x, *y));
}

/// Returns the initials of the first two words, or the first two letters of a single word.
fn initials(name: &str) -> String {
    let mut words =
        name.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|word| !word.is_empty());
    let (first, second) = (words.next().unwrap_or("?"), words.next());
    match second {
        Some(second) => first.chars().take(1).chain(second.chars().take(1)).collect(),
        None => first.chars().take(2).collect(),
    }
}

fn hue(name: &str) -> char {
    let sum = name.chars().fold(0, |sum, letter| (sum * 31 + u32::from(letter)) % 65_521);
    HUES.get(sum as usize % HUES.len()).copied().unwrap_or('a')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_the_same_initials_and_colour_as_in_the_window() {
        let names = ["Claude Code", "Cursor", "claude-desktop", "", "\u{c9}mile"];
        let icons = names.map(|name| format!("{} {}", initials(name), hue(name)));
        assert_eq!(icons, ["CC d", "Cu e", "cd a", "? a", "\u{c9}m c"]);
    }
}
