//! Reads a password from the terminal without echoing it.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;

use crate::LabError;

/// Turns off the terminal's echo until it is dropped.
struct Silent<'a> {
    terminal: &'a File,
    before: libc::termios,
}

impl<'a> Silent<'a> {
    fn new(terminal: &'a File) -> std::io::Result<Self> {
        // SAFETY: termios is plain data, which both calls only read or write, and the descriptor is
        // open.
        unsafe {
            let mut before: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(terminal.as_raw_fd(), &mut before) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let mut silent = before;
            silent.c_lflag &= !libc::ECHO;
            if libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &silent) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Silent { terminal, before })
        }
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // SAFETY: as above. `before` is the terminal's previous state.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}

/// Prints `prompt` and reads a line, without its line end.
pub fn ask(prompt: &str) -> Result<String, LabError> {
    let failed = || LabError::io("cannot read the password: there is no terminal");
    let mut terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(failed())?;
    terminal.write_all(prompt.as_bytes()).map_err(failed())?;
    let mut line = String::new();
    {
        let _silent = Silent::new(&terminal).map_err(failed())?;
        BufReader::new(&terminal)
            .read_line(&mut line)
            .map_err(failed())?;
    }
    terminal.write_all(b"\n").map_err(failed())?;
    Ok(line.trim_end_matches(['\n', '\r']).into())
}
