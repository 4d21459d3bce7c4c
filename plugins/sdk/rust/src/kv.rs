use std::time::Duration;

use crate::error::{answer, Errno, Error};
use crate::{host, wait, Job};

/// Kv are the keys and values of the worker, which all its jobs share. What a job
/// changes it sees itself at once. It is applied when the job succeeds, exactly
/// once; if it fails, nothing has changed. A key is 1 to 512 bytes without control
/// characters, a value has up to 1 MiB.
pub struct Kv<'a>(#[allow(dead_code)] &'a Job);

impl Job {
    /// Returns the keys and values of the worker.
    pub fn kv(&self) -> Kv<'_> {
        Kv(self)
    }
}

impl Kv<'_> {
    /// Returns the value of a key, if it is there.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match wait::fill(256, |room| host::kv_get(key, room)) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NotFound) => Ok(None),
            Err(e) => Err(e.of(format!("get key {}", key))),
        }
    }

    /// Sets a key for good.
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.put(key, value.as_ref(), 0)
    }

    /// Sets a key for a time, in whole milliseconds and at least one.
    pub fn set_for(&self, key: &str, value: impl AsRef<[u8]>, ttl: Duration) -> Result<(), Error> {
        self.put(key, value.as_ref(), wait::milliseconds(ttl).max(1))
    }

    fn put(&self, key: &str, value: &[u8], ttl: i64) -> Result<(), Error> {
        answer(host::kv_set(key, value, ttl), format!("set key {}", key)).map(|_| ())
    }

    /// Removes a key; one that isn't there is fine.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        answer(host::kv_del(key), format!("delete key {}", key)).map(|_| ())
    }

    /// Adds to a value that is a whole number in decimal, 0 without one, and returns
    /// the sum. What jobs add at the same time adds up: it is the way to count. The
    /// error is [`Errno::Invalid`] for a value that is no number.
    pub fn add(&self, key: &str, delta: i64) -> Result<i64, Error> {
        match host::kv_add(key, delta) {
            // Errors are the least numbers that there are.
            n if n < i64::MIN + 256 => Err(Errno::from(i64::MIN - n).of(format!("add to key {}", key))),
            sum => Ok(sum),
        }
    }

    /// Returns the version of a key, 0 if it isn't there, for
    /// [`Kv::compare_and_set`]. Ask for it before the value.
    pub fn version(&self, key: &str) -> Result<i64, Error> {
        match host::kv_version(key) {
            n if n < 0 => Err(Errno::from(n).of(format!("read version of key {}", key))),
            version => Ok(version),
        }
    }

    /// Sets a key if it has the version that this job was told. The error is
    /// [`Errno::Conflict`] if it was another one. If somebody changes the key before
    /// this job has succeeded, the attempt fails and is made again.
    pub fn compare_and_set(&self, key: &str, version: i64, value: impl AsRef<[u8]>) -> Result<(), Error> {
        answer(host::kv_cas(key, version, value.as_ref()), format!("compare and set key {}", key)).map(|_| ())
    }
}
