//! A module that another host loaded, bound by the symbols that the rewriter left in it.

use super::origin::{self, Origin, Texts};
use crate::context::device;
use crate::context::orders::Orders;
use crate::driver::handle::{self, Container, ContextHandle, Handle};
use crate::error::{Error, Result};
use crate::module::Latest;
use crate::slot::pool::LaunchContext;
use crate::slot::{LaunchSlot, Subject};
use crate::thread;
use cuinstr_abi::control::{ABI_VERSION, CONTROL_SYMBOL, ControlBlock, FLAG_SYMBOL, PAUSE_SYMBOL, PauseBlock};
use cuinstr_abi::sites::SiteMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::time::Duration;

/// How long attaching waits for a context that is busy.
pub const ATTACH_WITHIN: Duration = Duration::from_secs(10);

/// What is known of a module besides its handle. All of it is for reports only.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The PTX, cubin or fat binary that the module was loaded from: it names kernels and sites. Not needed for what this process rewrote
    /// itself ([`remember`](super::remember)).
    pub image: Option<Vec<u8>>,
    /// Sources that were rewritten elsewhere, with their sites.
    pub origins: Vec<Arc<Origin>>,
    /// Name of the kernel that will be launched, if it is to be called otherwise than the driver calls it.
    pub kernel: Option<String>,
    /// Folder that paths in site maps are relative to, for the lines of files; none are read without one.
    pub folder: Option<PathBuf>,
}

/// A rewritten module that another host loaded into a context that another host made. Clones share everything.
#[derive(Clone)]
pub struct Attached {
    pub(super) control: Arc<Control>,
    pub(super) subject: Subject,
}

/// One control block, and who uses it. All that attach to the same module share it.
pub(crate) struct Control {
    pub(super) context: ContextHandle,
    pub(super) launch_context: Arc<LaunchContext>,
    pub(super) address: u64,
    pub(super) unarmed: Orders,
    /// Address of the pause block, once the module was attached by a handle that leads to it.
    pub(super) pause: OnceLock<u64>,
    lock: Mutex<ControlBlockLock>,
}

/// Who uses a control block.
#[derive(Default)]
pub(super) struct ControlBlockLock {
    /// Whether it is armed for a launch that has not come.
    pub(super) is_armed: bool,
    /// The latest launch.
    pub(super) last: Option<Latest>,
}

impl ControlBlockLock {
    /// The launch that another one on this stream must come after, and that its own stream does not keep in order.
    pub(super) fn before(&self, stream: u64) -> Option<Arc<LaunchSlot>> {
        let last = self.last.as_ref().filter(|last| last.stream != stream)?;
        last.slot.upgrade().filter(|slot| slot.is_in_flight(last.number))
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = &self.subject.kernel;
        formatter.debug_struct("Attached").field("control", &self.control.address).field("kernel", kernel).finish_non_exhaustive()
    }
}

impl Attached {
    /// Binds a module of the calling thread's current context.
    ///
    /// The first attachment in a context waits for the kernels that run there, as loading a module does, but for [`ATTACH_WITHIN`] at most.
    ///
    /// # Safety
    /// The handle must be what it says it is. The module must stay loaded as long as this, its clones, or a launch that
    /// was guarded by it live. The context must stay as long as any of them is used.
    ///
    /// # Errors
    /// - [`Error::NotInstrumented`]: the module was not rewritten.
    /// - [`Error::OtherAbi`]: another release rewrote it.
    /// - [`Error::OtherContext`]: the variable is of another context.
    /// - [`Error::ContextBusy`]: the context does not answer.
    pub unsafe fn new(handle: Handle, about: &About) -> Result<Self> {
        if handle.is_null() {
            return Err(Error::BadHandle("the handle is null: give that of a loaded module, library, function or kernel".into()));
        }
        device::check_driver()?;
        let context = ContextHandle::current()?.ok_or(Error::NoContext)?;
        let image = about.image.as_deref().map(cuinstr_image::read).transpose();
        let image = image.map_err(|error| Error::NoModule(error.to_string()))?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let recent = origin::recent();
        // The calls that may wait are made by a thread that can be left behind.
        let work = move || {
            let _ = sender.send(Control::find(context, handle, &recent));
        };
        let started = thread::spawn("cuinstr-attach", work);
        started.map_err(|error| Error::Environment(format!("a thread could not be started: {error}")))?;
        let answer = receiver.recv_timeout(ATTACH_WITHIN);
        let (control, recent) = match answer {
            Ok(found) => found?,
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(Error::ContextBusy { after: ATTACH_WITHIN }),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::Environment("the driver lacks a call that this release makes; update it".into()));
            }
        };
        let origins: Vec<_> = recent.into_iter().chain(about.origins.iter().cloned()).collect();
        let mut sites: Vec<SiteMap> = image.as_ref().map_or_else(Vec::new, |image| image.site_maps.clone());
        for origin in &origins {
            if !sites.contains(&origin.sites) {
                sites.push(origin.sites.clone());
            }
        }
        let named = about.kernel.clone().or_else(|| handle.symbol().map(|symbol| cuinstr_image::Kernel::new(&symbol).name));
        let only = || match image.as_ref()?.kernels().as_slice() {
            [kernel] => Some(kernel.name.clone()),
            _ => None,
        };
        let kernel = named.or_else(only).unwrap_or_default();
        let sources = Arc::new(Texts { origins, folder: about.folder.clone() });
        let subject = Subject { kernel: kernel.into(), sites: sites.into(), sources, grid: [0; 3], block: [0; 3] };
        Ok(Self { control, subject })
    }

    /// The site maps that are known of it.
    #[must_use]
    pub fn sites(&self) -> &[SiteMap] {
        &self.subject.sites
    }

    /// Name of its kernel, as reports show it; empty if there may be several.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.subject.kernel
    }

    /// The same module, with another name for the kernel that will be launched.
    #[must_use]
    pub fn of_kernel(&self, name: &str) -> Self {
        let mut subject = self.subject.clone();
        subject.kernel = name.into();
        Self { control: Arc::clone(&self.control), subject }
    }
}

/// What a module's handle leads to: its control block, and those of the known sources that it was made of.
type Found = (Arc<Control>, Vec<Arc<Origin>>);

impl Control {
    /// In a thread of its own, which the context is made current in.
    fn find(context: ContextHandle, handle: Handle, recent: &[Arc<Origin>]) -> Result<Found> {
        context.bind()?;
        crate::driver::relax_capture()?;
        let container = handle.container().map_err(|fault| match fault.code {
            // Invalid value, invalid context, invalid handle, not found.
            1 | 201 | 400 | 500 => Error::BadHandle(format!("this handle leads to no module of the current context: {fault}")),
            _ => fault.into(),
        })?;
        let launch_context = LaunchContext::of_handle(context)?;
        let (address, flag) = match (handle, container) {
            (Handle::Control(address), _) => (address, None),
            (_, Some(container)) => {
                let (address, size) = symbol(container, CONTROL_SYMBOL)?;
                if size != size_of::<ControlBlock>() {
                    return Err(Error::OtherAbi { module: 0, runtime: ABI_VERSION });
                }
                (address, Some(symbol(container, FLAG_SYMBOL)?.0))
            }
            (_, None) => return Err(Error::NotInstrumented),
        };
        // Compared with memory of ours, which the driver tells about in the same words.
        let own = launch_context.memory().and_then(|own| handle::context_of_memory(own).ok().flatten());
        match handle::context_of_memory(address) {
            Ok(Some(other)) if own.is_some_and(|own| own != other) => {
                return Err(Error::OtherContext { what: "the module", of: "the calling thread's current one" });
            }
            Err(fault) if container.is_none() => {
                return Err(Error::BadHandle(format!("{address:#x} is no address of device memory: {fault}")));
            }
            _ => {}
        }
        let is_it = |control: &Arc<Self>| {
            control.context == context && control.address == address && flag.is_none_or(|flag| flag == control.unarmed.flag)
        };
        let known = |controls: &[Weak<Self>]| controls.iter().filter_map(Weak::upgrade).find(is_it);
        let found = known(&controls());
        let control = if let Some(control) = found {
            control
        } else {
            // Not under the lock: this asks the device, which may not answer.
            let orders = launch_context.read_orders(address, size_of::<Orders>())?;
            if orders.abi_version != ABI_VERSION {
                return Err(Error::OtherAbi { module: orders.abi_version, runtime: ABI_VERSION });
            }
            let unarmed = Orders::unarmed(flag.unwrap_or(orders.flag));
            let mut controls = controls();
            controls.retain(|control| control.strong_count() > 0);
            // Another thread may have been faster.
            known(&controls).unwrap_or_else(|| {
                let control = Arc::new(Self { context, launch_context, address, unarmed, pause: OnceLock::new(), lock: Mutex::default() });
                controls.push(Arc::downgrade(&control));
                control
            })
        };
        let found = container.map(|container| container.global(PAUSE_SYMBOL)).transpose()?.flatten();
        if let Some((address, _)) = found.filter(|(_, size)| *size == size_of::<PauseBlock>()) {
            let _ = control.pause.set(address);
        }
        // By an address alone it is not known what the module is made of; sites have ids that no other source has.
        let is_part = |origin: &&Arc<Origin>| {
            let name = format!("__cuinstr_sites_{}", origin.sites.hash);
            container.is_none_or(|container| container.global(&name).is_ok_and(|found| found.is_some()))
        };
        Ok((control, recent.iter().filter(is_part).cloned().collect()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ControlBlockLock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Control blocks that are attached to.
fn controls() -> MutexGuard<'static, Vec<Weak<Control>>> {
    static CONTROLS: Mutex<Vec<Weak<Control>>> = Mutex::new(Vec::new());
    CONTROLS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn symbol(container: Container, name: &str) -> Result<(u64, usize)> {
    let found = container.global(name).map_err(|fault| match fault.code {
        // Invalid value, invalid context, invalid handle: the driver knows no such module, or not here.
        1 | 201 | 400 => Error::BadHandle(format!("this handle leads to no module of the current context: {fault}")),
        _ => fault.into(),
    })?;
    found.ok_or(Error::NotInstrumented)
}
