//! Another program's window, which accepts text, covers an area or fills the screen.

use gtk::prelude::*;

/// Shows the window until standard input delivers a line or ends. Prints `ready` when the window is visible.
pub(crate) fn show(arguments: &[String]) {
    gtk::init().expect("a display");
    let kind = arguments.first().map_or("window", String::as_str);
    let over = kind == "over";
    let window = gtk::Window::new(if over { gtk::WindowType::Popup } else { gtk::WindowType::Toplevel });
    window.set_title("Another program");
    let entry = gtk::TextView::new();
    window.add(&entry);
    let numbers: Vec<i32> = arguments.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
    match (kind, numbers.as_slice()) {
        ("over", [x, y, width, height]) => {
            window.set_default_size(*width, *height);
            window.move_(*x, *y);
        }
        ("fullscreen", _) => window.fullscreen(),
        _ => window.set_default_size(500, 300),
    }
    window.connect_map_event(|_, _| {
        println!("ready");
        gtk::glib::Propagation::Proceed
    });
    window.show_all();
    std::thread::spawn(|| {
        let mut line = String::new();
        // Any line, or the end of input, closes the window.
        let _ = std::io::stdin().read_line(&mut line);
        std::process::exit(0);
    });
    gtk::main();
}
