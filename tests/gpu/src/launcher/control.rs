//! The control block of a module: armed before a launch, its flag written while the launch runs, its record read afterwards.

use super::{BRIEF, Fault, Gpu, Kernel, c_string, check, drained};
use cudarc::driver::sys;
use cuinstr_abi::control::{ABI_VERSION, Action, CONTROL_SYMBOL, ControlBlock, FIRST_LAUNCH, StopRecord};
use std::ptr;

/// What a launch is told.
#[derive(Debug, Clone, Copy)]
pub struct Orders {
    /// Its number.
    pub launch: u32,
    /// What a thread does that must stop.
    pub action: Action,
    /// Nanoseconds to the deadline, 0 for what is compiled in.
    pub timeout_ns: u64,
    /// Cycles for each block, 0 for what is compiled in.
    pub budget_cycles: u64,
    /// Iterations for each thread, 0 for what is compiled in.
    pub fuel: u64,
}

impl Orders {
    /// A launch that only the flag stops.
    #[must_use]
    pub fn new(launch: u32, action: Action) -> Self {
        Self { launch, action, timeout_ns: 0, budget_cycles: 0, fuel: 0 }
    }
}

/// The control block of a module.
#[derive(Debug)]
pub struct Control {
    address: u64,
    flag: u64,
    image: Pinned<ControlBlock>,
    copy: Pinned<ControlBlock>,
    host_record: Pinned<StopRecord>,
}

/// One value in pinned host memory that the device may read and write at any time.
#[derive(Debug)]
struct Pinned<T> {
    host: *mut T,
    device: u64,
}

impl<T: Copy> Pinned<T> {
    /// `T` must be a plain struct of integers, so that whatever the device writes is a value of it.
    fn new(value: T) -> Result<Self, Fault> {
        let mut host = ptr::null_mut();
        let mut device = 0;
        // SAFETY: the out pointers live through the calls. The size is that of `T`, page alignment is enough for it.
        unsafe {
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut host, size_of::<T>(), sys::CU_MEMHOSTALLOC_DEVICEMAP))?;
            check("cuMemHostGetDevicePointer", sys::cuMemHostGetDevicePointer_v2(&raw mut device, host, 0))?;
        }
        let pinned = Self { host: host.cast(), device };
        pinned.write(value);
        Ok(pinned)
    }

    fn write(&self, value: T) {
        // SAFETY: `host` points to memory for one `T` that is never freed.
        unsafe { ptr::write_volatile(self.host, value) }
    }

    fn read(&self) -> T {
        // SAFETY: as above, and it was written in `new`. The device writes whole integers; a struct read while it writes may mix old
        // fields and new ones, which callers know (they look at `published` first).
        unsafe { ptr::read_volatile(self.host) }
    }
}

impl Gpu {
    /// Finds a module's control block, and checks that it is as the ABI says before any host touched it.
    ///
    /// # Errors
    /// What the driver answered, or what is not as it should be.
    pub fn bind(&self, kernel: &Kernel) -> Result<Control, String> {
        let (mut address, mut size) = (0, 0);
        let symbol = c_string(CONTROL_SYMBOL);
        // SAFETY: the out pointers live through the call, the name ends with a zero.
        let result = unsafe { sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut size, kernel.module, symbol.as_ptr()) };
        check("cuModuleGetGlobal", result)?;
        if size != size_of::<ControlBlock>() {
            return Err(format!("the control block has {size} bytes"));
        }
        let blank = ControlBlock {
            abi_version: 0,
            action: 0,
            flag: 0,
            launch: 0,
            count_fuel: 0,
            timeout_ns: 0,
            start_ns: 0,
            budget_cycles: 0,
            fuel: 0,
            host_record: 0,
            record: 0,
            own_record: StopRecord::EMPTY,
        };
        let (image, copy) = (Pinned::new(blank)?, Pinned::new(blank)?);
        let mut control = Control { address, flag: 0, image, copy, host_record: Pinned::new(StopRecord::EMPTY)? };
        let block = self.block(&control)?;
        let untouched = ControlBlock { abi_version: ABI_VERSION, launch: FIRST_LAUNCH, flag: block.flag, ..blank };
        if block != untouched || block.flag == 0 {
            return Err(format!("the control block is not as it should be before anybody touches it: {block:?}"));
        }
        control.flag = block.flag;
        control.image.write(block);
        Ok(control)
    }

    /// Arms the next launch: one write in stream order.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn arm(&self, control: &Control, orders: &Orders) -> Result<(), Fault> {
        control.host_record.write(StopRecord::EMPTY);
        control.image.write(ControlBlock {
            abi_version: ABI_VERSION,
            action: orders.action as u32,
            flag: control.flag,
            launch: orders.launch,
            count_fuel: 0,
            timeout_ns: orders.timeout_ns,
            start_ns: 0,
            budget_cycles: orders.budget_cycles,
            fuel: orders.fuel,
            host_record: control.host_record.device,
            record: 0,
            own_record: StopRecord::EMPTY,
        });
        // SAFETY: source and destination hold one control block each. The source is pinned and read when the stream gets there;
        // `image` is written again only after the launch that follows has drained.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(control.address, control.image.host.cast(), size_of::<ControlBlock>(), self.run) };
        check("cuMemcpyHtoDAsync", result)
    }

    /// Writes a launch's number into the flag, past whatever runs.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn flip(&self, control: &Control, launch: u32) -> Result<(), Fault> {
        // SAFETY: the flag is one 32-bit word of the module, which is never unloaded.
        check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(control.flag, launch, 1, self.stop) })
    }

    /// Waits until a flip has arrived.
    ///
    /// # Errors
    /// What the driver answered, or that it took too long.
    pub fn flipped(&self) -> Result<(), Fault> {
        drained("writing the flag", self.stop, BRIEF)
    }

    /// Reads the stop record past whatever runs.
    ///
    /// # Errors
    /// What the driver answered, or that it took too long.
    pub fn record(&self, control: &Control) -> Result<StopRecord, Fault> {
        self.block(control).map(|block| block.own_record)
    }

    fn block(&self, control: &Control) -> Result<ControlBlock, Fault> {
        // SAFETY: source and destination hold one control block each, and the call's end is awaited before the copy is read.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(control.copy.host.cast(), control.address, size_of::<ControlBlock>(), self.stop) };
        check("cuMemcpyDtoHAsync", result)?;
        drained("reading the control block", self.stop, BRIEF)?;
        Ok(control.copy.read())
    }
}

impl Control {
    /// The record in pinned host memory, which is there after a trap too.
    #[must_use]
    pub fn host_record(&self) -> StopRecord {
        self.host_record.read()
    }
}
