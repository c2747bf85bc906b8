//! Reads a server's standard error and masks secrets in it.

use ironcurtain_mcp::wire::Input;
use ironcurtain_secrets::SecretMask;
use std::io;
use tokio::io::AsyncReadExt;

/// Length at which an incomplete line is returned as a piece, in bytes.
const MAX_LINE_LEN: usize = 4000;

/// Reader for a server's standard error. Returns complete lines, and splits long lines into pieces.
#[derive(Debug)]
pub struct ServerStderr {
    input: Input,
    mask: SecretMask,
    /// Bytes that were read but not yet returned.
    read: Vec<u8>,
    ended: bool,
}

impl ServerStderr {
    pub(super) fn new(input: Input) -> Self {
        Self { input, mask: SecretMask::default(), read: Vec::new(), ended: false }
    }

    /// Masks these secrets in all further output.
    pub(super) fn hide(&mut self, mask: SecretMask) {
        self.mask = mask;
    }

    /// Returns the next lines or a piece of a long line, or `None` at end of file.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(text) = self.take_complete_lines() {
                return Some(text);
            }
            if self.ended {
                let rest = std::mem::take(&mut self.read);
                return (!rest.is_empty()).then(|| self.mask.apply(&rest).into_owned());
            }
            self.read.reserve(MAX_LINE_LEN);
            let read: io::Result<usize> = self.input.read_buf(&mut self.read).await;
            self.ended = matches!(read, Ok(0) | Err(_));
        }
    }

    /// Removes and returns the complete lines, or a piece of a long line.
    fn take_complete_lines(&mut self) -> Option<Vec<u8>> {
        let overlap = self.mask.overlap();
        if let Some(end) = self.read.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.read.split_off(end + 1);
            let lines = std::mem::replace(&mut self.read, rest);
            return Some(self.mask.apply(&lines).into_owned());
        }
        if self.read.len() < MAX_LINE_LEN + overlap {
            return None;
        }
        // Hold back the last bytes, because they may be the start of a secret.
        let mut masked = self.mask.apply(&self.read).into_owned();
        self.read = masked.split_off(masked.len().saturating_sub(overlap));
        Some(masked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_mcp::wire::pair;
    use ironcurtain_secrets::Secret;
    use tokio::io::AsyncWriteExt;

    async fn read(pieces: &[&[u8]]) -> String {
        let (input, mut output) = pair().unwrap();
        let mask = SecretMask::of([&Secret::new("s3cret-value".to_owned())]);
        let mut stderr = ServerStderr::new(input);
        stderr.hide(mask);
        let mut masked = Vec::new();
        for piece in pieces {
            output.write_all(piece).await.unwrap();
            // Reads in small pieces, as if the program wrote slowly.
            while let Ok(Some(text)) = tokio::time::timeout(std::time::Duration::ZERO, stderr.next()).await {
                masked.extend(text);
            }
        }
        drop(output);
        while let Some(text) = stderr.next().await {
            masked.extend(text);
        }
        String::from_utf8(masked).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_is_masked_across_chunks() {
        assert_eq!(read(&[b"bad key: s3cret-", b"value!\nnext"]).await, "bad key: [secret]!\nnext");
        let long = "x".repeat(3_995);
        let text = format!("{long}s3cret-value{long}");
        for cut in 3_990..4_010 {
            let (first, second) = text.as_bytes().split_at(cut);
            assert_eq!(read(&[first, second]).await, format!("{long}[secret]{long}"), "cut at {cut}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn other_text_is_unchanged() {
        let long = format!("{}\nend", "y".repeat(10_000));
        assert_eq!(
            read(&[b"one\ntwo", b" three\n", long.as_bytes()]).await,
            format!("one\ntwo three\n{long}")
        );
    }
}
