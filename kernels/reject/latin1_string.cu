//@ about: a string in code holds Latin-1
//@ code: CI001
//@ severity: error

__global__ void greet(char *out) {
    const char *text = "grüß Gott";
    for (int i = 0; text[i] != 0; i++) out[i] = text[i];
}
