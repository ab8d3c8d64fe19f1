/* A bot in C for exe:./engine_bot (docs/write_a_bot.md): it builds or takes castles and takes control of
   clans where it can, and else plays at random. cc -o engine_bot examples/engine_bot.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after the text of a key. */
static unsigned long long number(const char *message, const char *key) {
    return strtoull(strstr(message, key) + strlen(key), NULL, 10);
}

int main(void) {
    static char line[1 << 16];
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is sent at once */
    while (fgets(line, sizeof line, stdin)) {
        if (!strstr(line, "\"id\":")) {
            puts("{\"protocol\": \"carolus-engine\", \"version\": 1, \"name\": \"engine_bot\"}");
            continue;
        }
        int players = number(line, "\"position\": \""), player = number(line, "\"player\":");
        char team = 'A' + player % (players == 4 ? 2 : players), *move = strstr(line, "\"moves\":");
        int legal[95], count = 0;
        for (char *at = strchr(strstr(line, "\"legal\":"), '['); *at != ']';)
            legal[count++] = strtol(at + 1, &at, 10);
        int choice = number(line, "\"seed\":") % count;
        move = strchr(move, '[') + 1;
        for (int k = 0; k < count; k++) { /* "red>court!" or, of team A, "E+1 A builds 4" */
            char *end = strchr(move + 1, '"');
            *end = 0;
            if (strchr(move, '!') || (move[1] == 'E' && move[5] == team)) choice = k;
            move = end + 3;
        }
        printf("{\"id\": %llu, \"action\": %d}\n", number(line, "\"id\":"), legal[choice]);
    }
}
