//! Provides the tray icon's image in a size that suits the screen.
//!
//! - Each size is drawn pixel by pixel, so the panel does not have to scale it.

use super::menu::TrayPicture;
use tauri::AppHandle;
use tauri::image::Image;

/// `true` if the system tints the icons in its panel. Such icons have a single colour.
pub(super) const IS_TINTED: bool = cfg!(target_os = "macos");

/// Size in pixels of an icon in this system's panel at scale 1.
const NOMINAL: f64 = if cfg!(target_os = "windows") { 16.0 } else { 22.0 };

/// One image in several sizes, smallest first, each with its size in pixels and its PNG data.
type Sizes = [(f64, &'static [u8]); 5];

macro_rules! sizes {
    ($state:literal, $kind:literal) => {
        [
            (16.0, include_bytes!(concat!("../../../icons/tray/", $state, "-", $kind, "-16.png"))),
            (22.0, include_bytes!(concat!("../../../icons/tray/", $state, "-", $kind, "-22.png"))),
            (24.0, include_bytes!(concat!("../../../icons/tray/", $state, "-", $kind, "-24.png"))),
            (32.0, include_bytes!(concat!("../../../icons/tray/", $state, "-", $kind, "-32.png"))),
            (44.0, include_bytes!(concat!("../../../icons/tray/", $state, "-", $kind, "-44.png"))),
        ]
    };
}

macro_rules! pictures {
    ($state:literal) => {
        if IS_TINTED { sizes!($state, "mono") } else { sizes!($state, "colour") }
    };
}

/// Returns the image for a state.
pub(super) fn picture(app: &AppHandle, picture: TrayPicture) -> tauri::Result<Image<'static>> {
    let scale = app.primary_monitor()?.map_or(1.0, |monitor| monitor.scale_factor());
    Image::from_bytes(fitting(&sizes(picture), scale))
}

fn sizes(picture: TrayPicture) -> Sizes {
    match picture {
        TrayPicture::Protecting => pictures!("protecting"),
        TrayPicture::Part => pictures!("part"),
        TrayPicture::Open => pictures!("open"),
        TrayPicture::Asking => pictures!("asking"),
        TrayPicture::Lockdown => pictures!("lockdown"),
        TrayPicture::Degraded => pictures!("degraded"),
    }
}

/// Returns the smallest image that is large enough, because shrinking an image loses less than enlarging it.
fn fitting(sizes: &Sizes, scale: f64) -> &'static [u8] {
    let wanted = NOMINAL * scale;
    let [.., (_, largest)] = *sizes;
    sizes.iter().find(|(size, _)| *size >= wanted).map_or(largest, |(_, picture)| picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_own_picture_in_each_size() {
        let states = [
            TrayPicture::Protecting,
            TrayPicture::Part,
            TrayPicture::Open,
            TrayPicture::Asking,
            TrayPicture::Lockdown,
            TrayPicture::Degraded,
        ];
        let mut seen: Vec<&[u8]> = Vec::new();
        for (size, picture) in states.into_iter().flat_map(sizes) {
            let image = Image::from_bytes(picture).expect("a picture");
            assert_eq!((f64::from(image.width()), f64::from(image.height())), (size, size));
            assert!(!seen.contains(&picture), "two states look alike");
            seen.push(picture);
        }
    }

    #[test]
    fn the_picture_is_the_next_larger_one() {
        let sizes = sizes(TrayPicture::Asking);
        let width = |scale| Image::from_bytes(fitting(&sizes, scale)).expect("a picture").width();
        assert_eq!([1.0, 1.25, 1.5, 2.0, 3.0].map(width), [22, 32, 44, 44, 44]);
    }
}
