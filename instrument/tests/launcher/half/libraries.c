/* A program with two libraries that have a half each. Its word: `b` has both run a grid, `f` has one run a grid while the other makes a call that waits for all kernels. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int one_load(void);
int two_load(void);
int one_run(void);
int two_run(void);
int two_free(void);
static int second;
static char does;
static void* other(void* unused) {
  (void)unused;
  if (does == 'f') usleep(300000);
  second = does == 'b' ? two_run() : two_free();
  return 0;
}
int main(int count, char** words) {
  pthread_t thread;
  does = count > 1 ? words[1][0] : 'b';
  /* A module is loaded when no kernel runs. */
  if (one_load() != 0 || two_load() != 0) return 3;
  pthread_create(&thread, 0, other, 0);
  int first = one_run();
  pthread_join(thread, 0);
  printf("%d %d\n", first, second);
  return 0;
}
