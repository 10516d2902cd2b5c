//@ about: a byte-code program that jumps to itself: switch and continue inside the loop
//@ entry: run_machine
//@ block: 32
//@ arg: u8[8] mod 4
//@ arg: u32[32] zero
//@ tier: 1

enum Op : unsigned char { NOP, INCREMENT, DOUBLE, JUMP_HOME, HALT };

__global__ void run_machine(const unsigned char *program, volatile unsigned *registers)
{
    int pc = 0;
    for (;;) {      // HANG
        switch (program[pc++ & 7]) {
        case NOP:
            continue;
        case INCREMENT:
            registers[threadIdx.x] = registers[threadIdx.x] + 1;
            continue;
        case DOUBLE:
            registers[threadIdx.x] = registers[threadIdx.x] * 2;
            break;
        case JUMP_HOME:
            pc = 0;
            break;
        case HALT:
            return;
        }
    }
}
