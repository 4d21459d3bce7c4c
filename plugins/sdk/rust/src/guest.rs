//! What the exports of a worker do. The macros [`worker`](crate::worker) and
//! [`entry`](crate::entry) make the exports, in the worker's own crate.

use std::cell::UnsafeCell;

use crate::{Job, Output, Result};

/// Makes functions the default entry of the worker and, if they are given, what
/// is called once when a sandbox is initialised, and when one was put back:
///
/// ```
/// # fn hello(job: &jobhost::Job) -> jobhost::Result<Vec<u8>> { Ok(job.input().to_vec()) }
/// # fn fill_tables() {}
/// # fn reseed() {}
/// jobhost::worker!(hello, init = fill_tables, wake = reseed);
/// ```
///
/// What `init` leaves behind is what each job finds. `wake` renews what was taken
/// there and must not repeat, such as seeds; it is called before each job whose
/// sandbox was put back to its beginning, or is a copy of one that was initialised.
#[macro_export]
macro_rules! worker {
    ($handler:expr $(, init = $init:expr)? $(, wake = $wake:expr)? $(,)?) => {
        $crate::entry!(jh_run, $handler);
        #[allow(dead_code)]
        const _: () = {
            #[cfg_attr(target_family = "wasm", no_mangle)]
            pub extern "C" fn jh_buf(least: u32) -> *mut u8 {
                $crate::guest::mailbox(least as usize)
            }
            #[cfg_attr(target_family = "wasm", no_mangle)]
            pub extern "C" fn _initialize() {
                $crate::guest::initialize();
                $(($init)();)?
            }
            $(
                #[cfg_attr(target_family = "wasm", no_mangle)]
                pub extern "C" fn jh_wake() {
                    ($wake)();
                }
            )?
        };
    };
}

/// Makes a function a further entry of the worker, which a job names in its option
/// `entry`, or the manifest in the worker's:
///
/// ```
/// # fn backwards(job: &jobhost::Job) -> jobhost::Result<Vec<u8>> { Ok(job.input().to_vec()) }
/// jobhost::entry!(reverse, backwards);
/// ```
#[macro_export]
macro_rules! entry {
    ($name:ident, $handler:expr) => {
        // Two blocks, so that the export may have the name of the handler.
        #[allow(dead_code)]
        const _: () = {
            fn __jobhost_run(len: u32) -> u64 {
                $crate::guest::run(len as usize, $handler)
            }
            const _: () = {
                #[cfg_attr(target_family = "wasm", no_mangle)]
                pub extern "C" fn $name(len: u32) -> u64 {
                    __jobhost_run(len)
                }
            };
        };
    };
}

/// Alone is a variable of an instance, which runs one job at a time, on one thread.
struct Alone<T>(UnsafeCell<T>);

unsafe impl<T> Sync for Alone<T> {}

const FIRST: usize = 64 << 10;

// Where the host writes the input. The first mailbox is in the module's own memory, so that a
// sandbox that is put back to its beginning has it still; the other one grows with
// the largest input.
static BOX: Alone<[u8; FIRST]> = Alone(UnsafeCell::new([0; FIRST]));
static GROWN: Alone<Vec<u8>> = Alone(UnsafeCell::new(Vec::new()));

// What the host reads after an entry returned.
static RESULT: Alone<Vec<u8>> = Alone(UnsafeCell::new(Vec::new()));

/// Runs once, before the first job.
#[cfg(target_family = "wasm")]
pub fn initialize() {
    use crate::{host, Failure, Level};
    extern "C" {
        fn __wasm_call_ctors();
    }
    // Called here, the linker sees a library that initialises itself. It would
    // otherwise call them in each export.
    unsafe { __wasm_call_ctors() };
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload();
        let text = text.downcast_ref::<&str>().copied().or_else(|| text.downcast_ref::<String>().map(String::as_str));
        if let Some(place) = panic.location() {
            host::log(Level::Error as i32, &format!("panicked at {}", place));
        }
        Failure::panic(text.unwrap_or("")).tell();
    }));
}

#[cfg(not(target_family = "wasm"))]
pub fn initialize() {}

/// Returns where the host may write an input of `least` bytes; null = there is no room.
pub fn mailbox(least: usize) -> *mut u8 {
    let grown = unsafe { &mut *GROWN.0.get() };
    if least <= FIRST && grown.is_empty() {
        return BOX.0.get().cast();
    }
    if least > grown.len() {
        // The old one may go before the new one is made.
        *grown = Vec::new();
        // A quarter more than is needed: sizes that rise slowly shouldn't leave a dead mailbox each.
        let mut room = Vec::new();
        if room.try_reserve_exact(least + least / 4).is_err() && room.try_reserve_exact(least).is_err() {
            return std::ptr::null_mut();
        }
        room.resize(room.capacity(), 0);
        *grown = room;
    }
    grown.as_mut_ptr()
}

/// Runs a handler for an input that the host has written to the mailbox.
pub fn run<O: Output>(len: usize, handler: impl FnOnce(&Job) -> Result<O>) -> u64 {
    // The host asks again only for more: a mailbox that has grown serves smaller inputs too.
    let grown = unsafe { &*GROWN.0.get() };
    let start = if grown.is_empty() { BOX.0.get().cast() } else { grown.as_ptr() };
    let job = Job::new(unsafe { std::slice::from_raw_parts(start, len) });
    let result = unsafe { &mut *RESULT.0.get() };
    *result = Vec::new(); // that of the job before
    match handler(&job) {
        Ok(output) => *result = output.into_bytes(),
        Err(failure) => failure.tell(),
    }
    match result.len() {
        0 => 0,
        n => (result.as_ptr() as u64) << 32 | n as u64,
    }
}
