/* A bot in C, for exe:./engine_bot (docs/engine.md). It builds or takes castles and controls clans
   where it can, and else plays at random:  cc -o engine_bot examples/engine_bot.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows a key of a message; NULL: it has no such key. */
static char *value(char *message, const char *key) {
    char *found = strstr(message, key);
    return found ? found + strlen(key) : NULL;
}

int main(void) {
    static char line[1 << 16];
    setvbuf(stdout, NULL, _IOLBF, 0); /* a line is sent at once */
    while (fgets(line, sizeof line, stdin)) {
        if (!value(line, "\"id\":")) {
            puts("{\"protocol\": \"carolus-engine\", \"version\": 1, \"name\": \"engine_bot\"}");
            continue;
        }
        long id = strtol(value(line, "\"id\":"), NULL, 10), player = strtol(value(line, "\"player\":"), NULL, 10);
        unsigned long long seed = strtoull(value(line, "\"seed\":"), NULL, 10);
        long players = strtol(value(line, "\"position\": \""), NULL, 10), legal[95];
        char team = 'A' + player % (players == 4 ? 2 : players);
        int count = 0, choice;
        for (char *at = value(line, "\"legal\": "); *at != ']';) legal[count++] = strtol(at + 1, &at, 10);
        choice = seed % count;
        char *move = value(line, "\"moves\": [");
        for (int k = 0; k < count; k++) {
            char *end = strchr(move + 1, '"');
            *end = 0; /* "E+1 A builds 4: ours if team A is */
            if ((move[1] == 'E' && move[5] == team) || strchr(move, '!')) choice = k;
            move = end + 3; /* past ", " */
        }
        printf("{\"id\": %ld, \"action\": %ld}\n", id, legal[choice]);
    }
    return 0;
}
