//@ about: a byte-code interpreter: loop, switch, break out of both, continue
//@ entry: run_programs
//@ grid: 8
//@ block: 64
//@ arg: i32[512] mod 5003
//@ arg: i32[512] mod 4001
//@ arg: i32[512] zero
//@ arg: i32[512] zero

enum Op : unsigned char { PUSH_A, PUSH_B, DUP2, SWAP, MOD, JUMP_IF_ZERO, JUMP, HALT };

// The greatest common divisor: Euclid's algorithm. The stack keeps all remainders.
__constant__ unsigned char program[] = {
    /* 0 */ PUSH_A,
    /* 1 */ PUSH_B,
    /* 2 */ JUMP_IF_ZERO, 8,
    /* 4 */ DUP2,           // a b a b
    /* 5 */ MOD,            // a b a%b
    /* 6 */ JUMP, 2,
    /* 8 */ SWAP,           // 0 gcd
    /* 9 */ HALT,
};

__global__ void run_programs(const int *a, const int *b, int *result, int *cycles)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int stack[64];
    int sp = 0, pc = 0, count = 0;

    while (pc < (int)sizeof program && sp < 60) {
        ++count;
        switch (program[pc++]) {
        case PUSH_A: stack[sp++] = a[tid]; continue;
        case PUSH_B: stack[sp++] = b[tid]; continue;
        case DUP2:
            stack[sp] = stack[sp - 2];
            stack[sp + 1] = stack[sp - 1];
            sp += 2;
            break;
        case SWAP: {
            const int t = stack[sp - 1];
            stack[sp - 1] = stack[sp - 2];
            stack[sp - 2] = t;
            break;
        }
        case MOD: --sp; stack[sp - 1] %= stack[sp]; break;
        case JUMP_IF_ZERO:
            if (stack[sp - 1] != 0) { ++pc; break; }
            // fallthrough
        case JUMP:
            pc = program[pc];
            break;
        case HALT:
            goto done;
        }
    }
done:
    result[tid] = stack[sp - 1];
    cycles[tid] = count;
}
