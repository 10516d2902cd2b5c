//! Names that CUDA and C define: functions by what they do with their arguments, and constants.

/// Functions of CUDA's own, and of C's, that take all numbers by value and return one.
const BY_VALUE: &str = "min max umin umax llmin llmax ullmin ullmax abs labs llabs fabs fabsf fmin fminf fmax fmaxf fmod fmodf \
    fma fmaf sqrt sqrtf rsqrt rsqrtf cbrt cbrtf rcbrt rcbrtf hypot hypotf exp expf exp2 exp2f exp10 exp10f expm1 expm1f log logf log2 log2f \
    log10 log10f log1p log1pf pow powf powi powif ldexp ldexpf scalbn scalbnf sin sinf cos cosf tan tanf sinpi sinpif cospi cospif asin \
    asinf acos acosf atan atanf atan2 atan2f sinh sinhf cosh coshf tanh tanhf asinh asinhf acosh acoshf atanh atanhf erf erff erfc erfcf \
    tgamma tgammaf lgamma lgammaf floor floorf ceil ceilf trunc truncf round roundf rint rintf nearbyint nearbyintf lrint lrintf llrint \
    llrintf lround lroundf copysign copysignf fdim fdimf remainder remainderf isnan isinf isfinite signbit norm3df norm4df rnorm3df \
    rnorm4df saturate printf assert \
    __ldg __ldca __ldcg __ldcs __ldcv __ldlu __stcg __stcs __stwb __stwt __popc __popcll __clz __clzll __ffs __ffsll __brev __brevll \
    __byte_perm __funnelshift_l __funnelshift_lc __funnelshift_r __funnelshift_rc __mulhi __umulhi __mul64hi __umul64hi __mul24 __umul24 \
    __sad __usad __hadd __rhadd __uhadd __urhadd __fns __dp4a __dp2a_lo __dp2a_hi __shfl __shfl_up __shfl_down __shfl_xor __shfl_sync \
    __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot __ballot_sync __any __any_sync __all __all_sync __match_any_sync \
    __activemask __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync \
    __syncthreads __syncwarp __syncthreads_count __syncthreads_and __syncthreads_or __threadfence __threadfence_block \
    __threadfence_system __nanosleep clock clock64 __expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __powf __saturatef \
    __fdividef __fdiv_rn __frcp_rn __frcp_rz __fsqrt_rn __frsqrt_rn __fadd_rn __fadd_rz __fadd_ru __fadd_rd __fsub_rn __fmul_rn __fmul_rz \
    __fmaf_rn __fmaf_rz __dadd_rn __dsub_rn __dmul_rn __ddiv_rn __fma_rn __drcp_rn __dsqrt_rn __int_as_float __float_as_int \
    __uint_as_float __float_as_uint __longlong_as_double __double_as_longlong __hiloint2double __double2hiint __double2loint \
    __int2float_rn __int2float_rz __uint2float_rn __float2int_rn __float2int_rz __float2int_rd __float2int_ru __float2uint_rn \
    __float2uint_rz __ll2float_rn __ull2float_rn __int2double_rn __uint2double_rn __double2int_rn __double2int_rz __double2float_rn \
    __float2half __float2half_rn __half2float __float2bfloat16 __bfloat162float __hmul __hsub __hfma __hadd2 __hmul2 __hfma2 __hmax \
    __hmin __hadd_sat __hsub2 __hneg __hneg2 __habs __habs2 __hdiv __h2div __hmax2 __hmin2 __heq __hne __hlt __hle __hgt __hge __heq2 __hne2 __hlt2 \
    __hle2 __hgt2 __hge2 __low2half __high2half __low2half2 __high2half2 __halves2half2 __half2half2 __float2half2_rn __float22bfloat162_rn \
    __floats2bfloat162_rn __bfloat1622float2 __low2bfloat16 __high2bfloat16 __low2float __high2float __float22half2_rn __half22float2 __floats2half2_rn __cvta_generic_to_shared \
    atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor atomicAdd_block \
    atomicAdd_system atomicCAS_block atomicCAS_system atomicExch_block atomicExch_system \
    make_char2 make_char4 make_uchar2 make_uchar4 make_short2 make_short4 make_int2 make_int3 make_int4 make_uint2 make_uint3 make_uint4 \
    make_float2 make_float3 make_float4 make_double2 make_double3 make_double4 make_longlong2 make_ulonglong2 make_half2 dim3 int2 int3 \
    int4 uint2 uint3 uint4 float2 float3 float4 double2";

/// Names in capitals that C's headers and CUDA's define as constants.
const CONSTANTS: &str = "INFINITY NAN HUGE_VAL HUGE_VALF NULL FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON CHAR_BIT SCHAR_MAX SCHAR_MIN \
    UCHAR_MAX CHAR_MAX CHAR_MIN SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX \
    INT8_MAX INT8_MIN UINT8_MAX INT16_MAX INT16_MIN UINT16_MAX INT32_MAX INT32_MIN UINT32_MAX INT64_MAX INT64_MIN UINT64_MAX SIZE_MAX RAND_MAX \
    M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 CUDART_INF CUDART_INF_F CUDART_NAN CUDART_NAN_F \
    CUDART_PI CUDART_PI_F CUDART_SQRT_TWO CUDART_SQRT_TWO_F CUDART_MAX_NORMAL_F CUDART_MIN_DENORM_F";

/// Functions that do the same but write through pointers which they are given, and so no variable whose address is never taken.
const BY_POINTER: &str = "sincos sincosf sincospi sincospif __sincosf modf modff frexp frexpf remquo remquof";

/// Whether functions of that name, CUDA's own or C's, take all numbers by value and return one.
pub(crate) fn takes_values(name: &[u8]) -> bool {
    BY_VALUE.split_ascii_whitespace().any(|word| word.as_bytes() == name)
}

/// Whether functions of that name take numbers by value, and write results through pointers that they are given.
pub(crate) fn writes_through_pointers(name: &[u8]) -> bool {
    BY_POINTER.split_ascii_whitespace().any(|word| word.as_bytes() == name)
}

/// Whether the name is that of a constant of C's headers or CUDA's.
pub(crate) fn is_constant(name: &[u8]) -> bool {
    CONSTANTS.split_ascii_whitespace().any(|word| word.as_bytes() == name)
}
