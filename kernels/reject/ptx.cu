//@ about: PTX under the name of CUDA source
//@ code: CI006
//@ severity: error

.version 8.0
.target sm_90
.address_size 64

.visible .entry spin(.param .u64 flag)
{
$again:
    bra $again;
}
