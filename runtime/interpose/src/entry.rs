//! How the table of wrapped functions is made.

/// A wrapped function of the driver.
pub(crate) struct Entry {
    /// The name that the driver exports it under.
    pub(crate) name: &'static str,
    /// The name that `cuGetProcAddress` knows it by.
    pub(crate) base: &'static str,
    /// The version of CUDA that brought this signature, as 12000.
    pub(crate) version: i32,
    /// Whether it is the variant for per-thread default streams.
    pub(crate) per_thread: bool,
    /// Our function; only its address counts.
    pub(crate) wrapper: Address,
    /// Sizes of its parameters.
    pub(crate) shape: fn() -> String,
}

/// The address of a function.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) *const ());

// SAFETY: it is never read through.
unsafe impl Sync for Address {}

/// How a parameter is passed.
pub(crate) trait Passed {
    /// `p` for a pointer, else the bytes of an integer.
    const HOW: &'static str;
}

impl<T> Passed for *mut T {
    const HOW: &'static str = "p";
}
impl<T> Passed for *const T {
    const HOW: &'static str = "p";
}
impl Passed for i32 {
    const HOW: &'static str = "4";
}
impl Passed for u32 {
    const HOW: &'static str = "4";
}
impl Passed for u64 {
    const HOW: &'static str = "8";
}
impl Passed for usize {
    const HOW: &'static str = "8";
}

/// Declares wrappers: `fn NAME = BASE, VERSION, PER_THREAD, |REAL| (PARAMETERS) BODY`. In the body, REAL is the driver's function.
macro_rules! entries {
    ($($(#[$note:meta])* fn $name:ident = $base:literal, $version:literal, $per_thread:literal, |$real:ident| ($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Place { $($name),* }

        $(
            $(#[$note])*
            ///
            /// # Safety
            /// As the driver's function of this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                let Some(real) = $crate::driver::real(Place::$name as usize) else { return $crate::driver::NOT_INITIALIZED };
                // SAFETY: the table holds the driver's function of this name and signature.
                let $real = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> u32>(real) };
                $body
            }
        )*

        pub(crate) static ENTRIES: &[$crate::entry::Entry] = &[$($crate::entry::Entry {
            name: stringify!($name),
            base: $base,
            version: $version,
            per_thread: $per_thread,
            wrapper: $crate::entry::Address($name as *const ()),
            shape: || [$(<$type as $crate::entry::Passed>::HOW),*].join(" "),
        }),*];
    };
}
pub(crate) use entries;
