/* Exits with an error if it can remove the file FAILS, and otherwise executes the program REAL. */
#include <unistd.h>

int main(int count, char **arguments) {
    (void)count;
    if (unlink(FAILS) == 0) return 1;
    execv(REAL, arguments);
    return 127;
}
