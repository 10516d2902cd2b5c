//! Launches that are paused and resumed, on the interpreter: the decision that the PTX pass puts into a kernel, block by block. Whatever the grid, the instants and
//! the order in which blocks begin, each block runs exactly once.

use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use cuinstr_abi::control::{PAUSE_SYMBOL, PauseBlock};
use cuinstr_harness::random::Random;
use cuinstr_simulate::{Launch, Machine, Memory, Outcome, Program};
use std::mem::offset_of;

/// Each block adds one to its word, in a loop whose end is a barrier of the block's own.
const KERNEL: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry marks(.param .u64 counts, .param .u32 rounds)
{
	.reg .pred %p;
	.reg .b32 %block, %x, %y, %left;
	.reg .b64 %at;
	ld.param.u64 %at, [counts];
	ld.param.u32 %left, [rounds];
	mov.u32 %block, %ctaid.z;
	mov.u32 %x, %nctaid.y;
	mov.u32 %y, %ctaid.y;
	mad.lo.u32 %block, %block, %x, %y;
	mov.u32 %x, %nctaid.x;
	mov.u32 %y, %ctaid.x;
	mad.lo.u32 %block, %block, %x, %y;
	mad.wide.u32 %at, %block, 4, %at;
$again:
	bar.sync 0;
	sub.u32 %left, %left, 1;
	setp.ne.u32 %p, %left, 0;
	@%p bra $again;
	red.global.add.u32 [%at], 1;
	ret;
}
";
/// Number of the launch, as a host gives it.
const NUMBER: u32 = 5;

/// A launch, and the host's words and bitmaps in its memory.
struct Host<'p> {
    program: &'p Program,
    launch: Launch,
    blocks: usize,
    pause: u64,
    asked: u64,
    bitmaps: [u64; 2],
    counts: u64,
}

impl<'p> Host<'p> {
    fn new(program: &'p Program, grid: [u32; 3], block: [u32; 3], rounds: u32) -> (Self, Memory) {
        let mut memory = Memory::new(program);
        let blocks = grid.iter().product::<u32>() as usize;
        let counts = memory.allocate(vec![0; 4 * blocks]);
        let asked = memory.allocate(vec![0; 4]);
        let bitmaps = [0; 2].map(|_: u32| memory.allocate(vec![0; 4 * blocks.div_ceil(32)]));
        let pause = memory.address(PAUSE_SYMBOL).expect("the module is pausable");
        let parameters = vec![counts.to_le_bytes().to_vec(), rounds.to_le_bytes().to_vec()];
        let launch = Launch { kernel: "marks".into(), grid, block, shared: 0, parameters };
        (Self { program, launch, blocks, pause, asked, bitmaps, counts }, memory)
    }

    /// Writes the pause block for the first part, or for the blocks that have declined.
    fn arm(&mut self, memory: &mut Memory, left: Option<(usize, usize)>) {
        self.bitmaps.swap(0, 1);
        let [declined, missing] = self.bitmaps;
        (0..self.blocks.div_ceil(32)).for_each(|word| assert!(memory.write(declined + 4 * word as u64, 4, 0)));
        let (first, last) = left.unwrap_or((0, 0));
        let words = [
            (offset_of!(PauseBlock, launch), 4, u64::from(NUMBER)),
            (offset_of!(PauseBlock, first), 4, first as u64),
            (offset_of!(PauseBlock, span), 4, (last - first) as u64),
            (offset_of!(PauseBlock, blocks), 4, self.blocks as u64),
            (offset_of!(PauseBlock, asked), 8, self.asked),
            (offset_of!(PauseBlock, missing), 8, if left.is_some() { missing } else { 0 }),
            (offset_of!(PauseBlock, declined), 8, declined),
        ];
        for (offset, size, value) in words {
            assert!(memory.write(self.pause + offset as u64, size, value));
        }
        assert!(memory.write(self.asked, 4, 0));
    }

    /// The blocks that have declined: the first, the last, and how many.
    fn declined(&self, memory: &Memory) -> Vec<usize> {
        let bytes = memory.bytes(self.bitmaps[0]).expect("a bitmap");
        (0..self.blocks).filter(|block| bytes[block / 8] & 1 << (block % 8) != 0).collect()
    }

    /// One part of the launch: blocks begin in a random order, a few at a time, and somebody asks for a pause after so many instructions, or nobody does.
    fn part(&self, memory: Memory, random: &mut Random, asks_after: Option<u64>) -> Memory {
        let mut machine = Machine::new(self.program, memory, self.launch.clone()).expect("it is a launch");
        let mut waiting: Vec<usize> = (0..self.blocks).collect();
        let (slots, mut running) = (1 + random.below(4), Vec::new());
        let mut asks_after = asks_after;
        while !waiting.is_empty() || !running.is_empty() {
            while running.len() < slots && !waiting.is_empty() {
                running.push(waiting.swap_remove(random.below(waiting.len())));
            }
            if asks_after.is_some_and(|after| machine.steps >= after) {
                asks_after = None;
                assert!(machine.memory.write(self.asked, 4, u64::from(NUMBER)));
            }
            let until = machine.steps + 1 + random.below(200) as u64;
            let outcome = machine.run_some(&running, until, &mut |_| ());
            assert!(matches!(outcome, None | Some(Outcome::Completed)), "{outcome:?}");
            running.retain(|block| !machine.has_ended(*block));
        }
        machine.memory
    }
}

fn program(is_pausable: bool) -> Program {
    let options = Options { path: "marks.ptx".to_owned(), pausable: is_pausable, ..Options::default() };
    let rewrite = rewrite_ptx(KERNEL.as_bytes(), &options);
    let text = String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text");
    assert!(cuinstr::verify::verify_ptx(&text).holds(), "the proof holds with the decision");
    Program::read(&text).expect("it is read")
}

#[test]
fn each_block_runs_exactly_once() {
    let program = program(true);
    let mut random = Random::new(27);
    let cases = std::env::var("CUINSTR_PAUSES").map_or(14, |count| count.parse().expect("a number"));
    let (mut pauses, mut declined_all) = (0, 0);
    for case in 0..cases {
        let grid = [1 + random.below(20) as u32, 1 + random.below(4) as u32, 1 + random.below(3) as u32];
        let block = random.of(&[[1, 1, 1], [5, 1, 1], [8, 2, 2], [40, 1, 1]]);
        let (mut host, mut memory) = Host::new(&program, grid, block, 1 + random.below(4) as u32);
        let mut left = None;
        for part in 0.. {
            host.arm(&mut memory, left);
            let asks_after = (part < 6 && random.percent(80)).then(|| if random.percent(20) { 0 } else { random.below(4000) as u64 });
            memory = host.part(memory, &mut random, asks_after);
            let declined = host.declined(&memory);
            let (Some(first), Some(last)) = (declined.first(), declined.last()) else { break };
            pauses += 1;
            declined_all += usize::from(declined.len() == host.blocks);
            left = Some((*first, *last));
        }
        let counts = memory.bytes(host.counts).expect("the counts");
        let threads = block.iter().product::<u32>();
        let wrong = counts.chunks(4).position(|count| count != threads.to_le_bytes());
        assert_eq!(wrong, None, "case {case}: a grid {grid:?} of blocks {block:?}");
    }
    assert!(pauses > cases && declined_all > 0, "{pauses} pauses in {cases} cases, {declined_all} of all blocks");
}

#[test]
fn a_host_that_knows_no_pause_block_has_every_block_run() {
    let program = program(true);
    let (host, memory) = Host::new(&program, [9, 2, 1], [33, 1, 1], 2);
    let memory = host.part(memory, &mut Random::new(1), None);
    assert!(host.declined(&memory).is_empty());
    assert!(memory.bytes(host.counts).expect("the counts").chunks(4).all(|count| count == 33_u32.to_le_bytes()));
}

#[test]
fn blocks_of_another_grid_and_of_another_launch_do_not_decline() {
    let program = program(true);
    for (offset, value) in [(offset_of!(PauseBlock, blocks), 17), (offset_of!(PauseBlock, launch), u64::from(NUMBER) + 1)] {
        let (mut host, mut memory) = Host::new(&program, [9, 2, 1], [33, 1, 1], 2);
        host.arm(&mut memory, None);
        assert!(memory.write(host.pause + offset as u64, 4, value));
        assert!(memory.write(host.asked, 4, u64::from(NUMBER)));
        let memory = host.part(memory, &mut Random::new(1), None);
        assert!(host.declined(&memory).is_empty());
        assert!(memory.bytes(host.counts).expect("the counts").chunks(4).all(|count| count == 33_u32.to_le_bytes()));
    }
}

#[test]
fn a_module_that_is_not_pausable_has_no_pause_block() {
    assert_eq!(Memory::new(&program(false)).address(PAUSE_SYMBOL), None);
}

#[test]
fn what_the_device_launches_is_refused_and_clusters_are_named() {
    let text = |body: &str, head: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 s);\n.visible .entry k() {head}\n{{\n{body}ret;\n}}\n"
        )
    };
    let options = Options { path: "k.ptx".to_owned(), pausable: true, ..Options::default() };
    let launches = "{ .param .b64 a; .param .b64 s; .param .b32 r; call.uni (r), cudaLaunchDeviceV2, (a, s); }\n";
    let codes = |text: String| -> Vec<&'static str> {
        rewrite_ptx(text.as_bytes(), &options).diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect()
    };
    assert!(codes(text(launches, "")).contains(&"CI024"));
    assert!(codes(text(&launches.replace("cudaLaunchDeviceV2", "cudaGraphLaunch"), "")).contains(&"CI024"));
    // A function of the user's is known by no part of its name.
    assert_eq!(codes(text("call myLaunchDevice;\n", "").replace(".extern", ".func myLaunchDevice() { ret; }\n.extern")), [""; 0]);
    assert_eq!(codes(text("", ".reqnctapercluster 2, 1, 1")), ["CI025"]);
    let source = b"__global__ void child() { }\n__global__ void parent() { child<<<1, 1>>>(); }\n";
    let rewrite = cuinstr::rewrite(source, &Options { path: "k.cu".to_owned(), pausable: true, ..Options::default() });
    assert!(rewrite.output.is_none() && rewrite.diagnostics.iter().any(|diagnostic| diagnostic.code.id() == "CI024"));
}
