//! A launch that can be kept.

use super::again::Again;
use super::argument::Value;
use super::settings::{Settings, setting_methods};
use crate::error::{Error, Result};
use crate::launch::Running;
use crate::limits::{Given, limit_methods};
use crate::module::Kernel;
use cudarc::driver::{CudaStream, DeviceRepr, LaunchConfig};
use std::sync::{Arc, Mutex};

/// A launch that can be kept: it owns its arguments, its stream and its kernel, and starts as often as you like. Made by [`Kernel::prepare`].
#[derive(Debug, Clone)]
#[must_use = "nothing is launched before `start`"]
pub struct Prepared {
    pub(super) kernel: Kernel,
    pub(super) stream: Arc<CudaStream>,
    pub(super) values: Vec<Value>,
    pub(super) given: Given,
    settings: Settings,
}

impl Prepared {
    pub(crate) fn new(kernel: Kernel, stream: Arc<CudaStream>) -> Self {
        Self { kernel, stream, values: Vec::new(), given: Given::NONE, settings: Settings::default() }
    }

    /// What it launches.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The next argument, by value: a number, a struct, or the address of device memory, which must live as long as launches use it.
    pub fn arg<T: DeviceRepr + Copy>(&mut self, value: T) -> &mut Self {
        self.values.push(Value::new(&value));
        self
    }

    /// Another value for an argument that was given, counted from 0.
    ///
    /// # Errors
    /// If there is no such argument, or it has another size.
    pub fn set_arg<T: DeviceRepr + Copy>(&mut self, index: usize, value: T) -> Result<&mut Self> {
        let (count, kernel) = (self.values.len(), self.kernel.name().to_owned());
        let wrong = |what: String| Error::Arguments { kernel, what };
        match self.values.get_mut(index) {
            None => return Err(wrong(format!("there is no argument {index}, {count} were given"))),
            Some(place) if place.bytes != size_of::<T>() => {
                return Err(wrong(format!("argument {index} has {} bytes, its new value {}", place.bytes, size_of::<T>())));
            }
            Some(place) => *place = Value::new(&value),
        }
        Ok(self)
    }

    #[cfg(all(any(feature = "worker", feature = "snapshot"), unix))]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.values.push(Value::of_bytes(bytes));
        self
    }

    /// The bytes of each argument.
    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn argument_bytes(&self) -> Vec<Vec<u8>> {
        self.values.iter().map(Value::to_bytes).collect()
    }

    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn given_limits(&self) -> &crate::limits::Limits {
        &self.given.limits
    }

    limit_methods!();
    setting_methods!();

    /// Launches it in clusters of so many blocks (x, y, z), where the kernel does not name their size itself.
    pub fn cluster(&mut self, blocks: [u32; 3]) -> &mut Self {
        self.settings.cluster = Some(blocks);
        self
    }

    /// Lets it be paused and resumed ([`Running::pause`]), which takes a module that was rewritten with `--pausable`. What is queued behind the launch waits for
    /// all parts of it.
    pub fn pausable(&mut self) -> &mut Self {
        self.settings.is_pausable = true;
        self
    }

    /// Launches it, and returns at once. It can be started again, also while it is in flight.
    ///
    /// # Safety
    /// As for [`Launch::start`].
    ///
    /// # Errors
    /// As for [`Launch::start`].
    pub unsafe fn start(&self, config: LaunchConfig) -> Result<Running> {
        // SAFETY: the caller's promise.
        unsafe { self.start_blocks(config, None) }
    }

    /// Launches these blocks of it, or all.
    ///
    /// # Safety
    /// As for [`Launch::start`].
    pub(super) unsafe fn start_blocks(&self, config: LaunchConfig, blocks: Option<&Arc<[u32]>>) -> Result<Running> {
        let mut launch = self.kernel.on(&self.stream)?;
        (launch.given, launch.settings, launch.blocks) = (self.given, self.settings, blocks.cloned());
        if let Some(blocks) = self.settings.cluster {
            launch.cluster(blocks)?;
        }
        for value in &self.values {
            // The first word stands for all of them: the driver reads as many as the parameter has.
            launch.sized_arg(&value.words[0], value.name, Some(value.bytes));
        }
        let again = if self.settings.is_pausable {
            let launch_context = self.kernel.loaded().launch_context();
            launch_context.bind()?;
            let [beside, aside] = [(); 2].map(|()| launch_context.borrow_beside(self.stream.cu_stream()));
            let instance = Arc::clone(&launch.instance);
            let held = Mutex::new(vec![self.stream.cu_stream().addr()]);
            Some(Again { prepared: self.clone(), config, instance, beside: beside?, aside: aside?, held })
        } else {
            None
        };
        // SAFETY: the caller's promise; the sizes are compared with the kernel's parameters where the driver tells them.
        let running = unsafe { launch.start(config) }?;
        Ok(match again {
            Some(again) => running.repeatable(again),
            None => running,
        })
    }
}
