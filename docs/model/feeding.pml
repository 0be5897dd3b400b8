/* For how long a host lives: at most T + 2W after its last proof began, and at most W after it has decided to reset.
 *
 * never_two_copies.pml builds on these two bounds. Here is where they come from: a judgement that is finished lets the
 * watchdog be fed, but the feeding itself may stall; and a watchdog may fire as late as W after it was fed. */
#ifndef T
#define T 4
#endif
#ifndef W
#define W 2
#endif
#ifdef NO_SECOND_W              /* rule 11: as if nothing stalled between judging and feeding */
#define BOUND (T + W)
#else
#define BOUND (T + 2 * W)
#endif
#define ANSWER_AGE (T + 1)      /* how late an answer may be */

byte proof_age;                 /* since the last proof began, as X dates it */
byte true_age;                  /* since the last read was sent that found X not condemned */
byte fed_age;
byte decided_age;
bit judged; bit decided;
bit reading; byte read_age;     /* an answer under way */

init {
do
:: d_step { fed_age < W -> printf("-- tick\n");     /* else the watchdog fires now */
    fed_age++;
    if :: proof_age <= T -> proof_age++ :: else fi;
    true_age++;
    if :: decided -> decided_age++ :: else fi;
    if :: reading -> read_age++ :: else fi;
    assert(true_age <= BOUND && decided_age <= W) }
:: d_step { !reading -> printf("X sends a read\n"); reading = 1; read_age = 0 }
:: d_step { reading && read_age <= ANSWER_AGE -> printf("X has the answer: not condemned\n");
#ifdef NO_DATE_OF_SENDING       /* rule 1 */
    proof_age = 0;
#else
    proof_age = (read_age < proof_age -> read_age : proof_age);
#endif
    true_age = (read_age < true_age -> read_age : true_age);
    reading = 0; read_age = 0 }
:: d_step { reading -> printf("the read fails\n"); reading = 0; read_age = 0 }
:: d_step { !judged && !decided && proof_age <= T -> printf("X judges that it may feed\n"); judged = 1 }
:: d_step { judged -> printf("X feeds\n"); judged = 0; fed_age = 0 }
:: d_step { !judged && !decided -> printf("X decides to reset\n"); decided = 1 }    /* one thread: no feeding is left */
#ifdef NO_FEED_BY_JUDGEMENT     /* rule 2 */
:: d_step { printf("a thread of its own feeds\n"); fed_age = 0 }
#endif
#ifdef NO_OWED_RESET            /* rule 7 */
:: d_step { decided && proof_age == 0 -> printf("a proof talks X out of the reset\n"); decided = 0 }
#endif
:: printf("X is reset\n") -> break
od
}
