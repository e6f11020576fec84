//! Section `memory`: what one access to memory costs here, which no filter larger than the processor's caches can go below.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::Result;
use crate::report::{Report, mebibytes, median, nanoseconds};
use crate::settings::Settings;

/// Sizes of what is read, in bytes: to 2 GiB, from what fits into a second-level cache.
const SIZES: [usize; 7] = [128 << 10, 1 << 20, 4 << 20, 16 << 20, 128 << 20, 512 << 20, 2 << 30];
/// Accesses in a round.
const STEPS: usize = 1 << 20;
/// A cache line, and a line of a filter.
const LINE: usize = 64;
const PAGE: usize = 4096;

/// Follows a random path through all lines of a block, each access waiting for the one before.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("One access to memory")?;
    report.paragraph(&format!(
        "Processor time of one read of a random cache line that waits for the read before, in a block of pages of 4 KiB (which a server \
         has, since it turns huge pages off); nanoseconds, medians of {} rounds of {STEPS} reads. A single command waits for \
         one at least; the reads of a command of many items overlap.",
        settings.rounds
    ))?;
    let mut rows = Vec::new();
    for size in SIZES {
        let block = Block::new(size)?;
        let mut at = 0;
        let times = (0..=settings.rounds).map(|_| {
            let begin = processor_ns();
            for _ in 0..STEPS {
                at = block.next(at);
            }
            (processor_ns() - begin) / STEPS as f64
        });
        // The first round fills the caches.
        let times: Vec<f64> = times.skip(1).collect();
        std::hint::black_box(at);
        rows.push(vec![mebibytes(size as u64), nanoseconds(median(times))]);
    }
    report.table(&["MiB".to_owned(), "ns".to_owned()], &rows)
}

/// The processor time of this thread, in nanoseconds.
fn processor_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Memory whose lines each hold the number of the one to read next.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    fn new(size: usize) -> Result<Self> {
        let layout = Layout::from_size_align(size, PAGE)?;
        // SAFETY: the size is not 0.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: the range is ours and begins on a page; the call changes no byte of it.
        unsafe { libc::madvise(memory.cast(), size, libc::MADV_NOHUGEPAGE) };
        let block = Self { start, layout };
        // A generator of full period over a power of two visits every line once, in an order that no prefetcher guesses.
        let lines = size / LINE;
        for line in 0..lines {
            let next =
                line.wrapping_mul(0x9E37_79B1).wrapping_mul(4).wrapping_add(line).wrapping_add(0x5851_F42D) % lines;
            // SAFETY: `line` is below the number of lines.
            unsafe { block.start.add(line * LINE).cast::<usize>().write(next) };
        }
        Ok(block)
    }

    /// The line after this one.
    fn next(&self, line: usize) -> usize {
        // SAFETY: only numbers of lines are stored, and the first is 0.
        unsafe { self.start.add(line * LINE).cast::<usize>().read() }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
