/* Ends at once when it can remove the file FAILS, and is the program REAL otherwise. */
#include <unistd.h>

int main(int count, char **arguments) {
    (void)count;
    if (unlink(FAILS) == 0) return 1;
    execv(REAL, arguments);
    return 127;
}
