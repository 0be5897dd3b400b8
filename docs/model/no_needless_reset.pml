/* No needless reset: the control plane is out, or flickers, or one host alone can't reach it, and X is not condemned.
 * As long as enough peers can talk to X, it stays up. README.md tells what is left out.
 *
 * One tick is one second, and the durations are the defaults of the settings. X does what it does at once when it is
 * due; how long a read or a round of questions takes, up to its deadline, is anybody's guess.
 *
 * X was condemned under id 1, and that was lifted; each peer may or may not have noticed. What is checked holds from
 * X's first proof since: a host that has not heard yet of the lifting can't be told from one that is condemned. */

/* ---- The budget (docs/design.md) -------------------------------------------------------------------------------- */
#ifndef T
#define T 22                    /* the self timeout */
#endif
#define READ_EVERY 4
#define READ_DEADLINE 2
#define RETRY_AFTER 1
#define FAILED_READS 3          /* in a row start an inquiry */
#define ROUND 2
#define INQUIRY (4 * ROUND)     /* at most */
#ifndef PEERS
#define PEERS 3
#endif
#ifndef SILENT
#define SILENT 1                /* so many peers are silent; n = PEERS + 1, and the others make 2(E + 1) > n */
#endif
#ifndef LIARS
#define LIARS 0                 /* so many peers say "unhealthy" whatever they know; the silent ones are others */
#endif

bit api = 1;                    /* whether anybody reaches the API */
bit path = 1;                   /* whether X does, then */
bit remembers[PEERS];           /* the peer knows X condemned under id 1 */
bit listed[PEERS] = 1;          /* it has listed the condemned since it started */
bit silent[PEERS];

mtype = { pauses, reads, asks };
mtype x = pauses;
byte due = READ_EVERY;          /* seconds until the pause is over */
byte lasting;                   /* seconds since the read or the inquiry began */
byte failures;
bit outage;                     /* X's last verdict */
byte proof_age;
bit heard;                      /* X had a proof since the lifting */
bit lifted;                     /* X knows that id 1 is lifted */
byte answered; byte errors; byte accusers;
bit gone;                       /* X was reset, before it could know better */

#define has(mask, p) (((mask) >> (p)) & 1)
#define with(mask, p) ((mask) | (1 << (p)))

#ifdef NO_COUNTING_ITSELF       /* rule 3: the host itself counts */
#define IS_OUTAGE (2 * errors > PEERS + 1)
#else
#define IS_OUTAGE (2 * (errors + 1) > PEERS + 1)
#endif
#ifdef NO_SHORTER_NEXT_TIME     /* rule 3: after an outage verdict one failed read starts the next inquiry */
#define ENOUGH FAILED_READS
#else
#define ENOUGH (outage -> 1 : FAILED_READS)
#endif

inline pause(seconds) { x = pauses; due = seconds; lasting = 0 }
inline no_answers() { answered = 0; errors = 0; accusers = 0 }
inline proof(age) { proof_age = (age < proof_age -> age : proof_age); failures = 0; no_answers() }
inline must_not_reset() { assert(!heard) }
inline read_failed() {
    if :: failures < FAILED_READS -> failures++ :: else fi;
    if
    :: failures >= ENOUGH -> x = asks; lasting = 0; no_answers()
    :: else -> pause(RETRY_AFTER)
    fi
}
inline verdict() {
    if
#ifdef NO_MAJORITY_ALONE        /* rule 3: an accuser only takes itself out of the majority */
    :: accusers > 0 || !IS_OUTAGE -> must_not_reset(); gone = 1
#else
    :: !IS_OUTAGE -> must_not_reset(); gone = 1
#endif
    :: else -> outage = 1; proof(lasting); pause((lasting < READ_EVERY -> READ_EVERY - lasting : 0))
    fi
}
inline healthy(p) {
    remembers[p] = 0; heard = 1;
#ifndef NO_LIFTED_BY_PEER       /* rule 4: "healthy" names the last id that the peer's read found lifted */
    lifted = 1;
#endif
    if :: lasting > ROUND -> lasting = ROUND :: else fi;    /* since the question to this peer */
    outage = 0; proof(lasting); pause(READ_EVERY - lasting)
}
#ifdef NO_LIFTED_IDS            /* rule 4: an id that X knows to be lifted is old news */
#define ACCUSES(p) ((p) < LIARS || remembers[p])
#else
#define ACCUSES(p) ((p) < LIARS || (remembers[p] && !lifted))
#endif
#ifdef NO_ANSWER_BEFORE_LISTING /* rule 4: who has not listed the condemned yet says "api-error" */
#define SPEAKS(p) (!silent[p] && listed[p])
#else
#define SPEAKS(p) (!silent[p])
#endif

#ifdef API_UP                   /* the control plane is well: only X can't reach it, and peers that listed the condemned read */
#define MAY_FAIL(p) ((p) < LIARS || !listed[p])
#define MAY_RESTART 0
#else
#define MAY_FAIL(p) (1)
#define MAY_RESTART 1
#endif

#define PEER(p) \
:: d_step { (p) >= LIARS && x == asks && !has(answered, p) && SPEAKS(p) && api && listed[p] -> \
    printf("peer %d: healthy\n", p); healthy(p) } \
:: d_step { x == asks && !has(answered, p) && SPEAKS(p) && MAY_FAIL(p) -> answered = with(answered, p); \
    if \
    :: ACCUSES(p) -> printf("peer %d: unhealthy\n", p); accusers++ \
    :: else -> printf("peer %d: api-error\n", p); errors++ \
    fi } \
:: d_step { api && !listed[p] -> printf("peer %d lists the condemned\n", p); listed[p] = 1; remembers[p] = 0 } \
:: d_step { MAY_RESTART && listed[p] && !has(answered, p) -> printf("peer %d restarts\n", p); listed[p] = 0; remembers[p] = 0 }

#define MUST_ANSWER(p) (SPEAKS(p) && !has(answered, p))
#if PEERS == 2
#define ALL_ANSWERED !(MUST_ANSWER(0) || MUST_ANSWER(1))
#else
#define ALL_ANSWERED !(MUST_ANSWER(0) || MUST_ANSWER(1) || MUST_ANSWER(2))
#endif

init {
byte p;
/* Who has not noticed the lifting, and who is silent. */
for (p : 0 .. PEERS - 1) { if :: remembers[p] = 0 :: remembers[p] = 1 fi }
for (p : 0 .. PEERS - 1) { if :: p >= PEERS - SILENT -> silent[p] = 1 :: else fi }
do
:: gone -> break
/* ---- Time. It does not pass what is due. ------------------------------------------------------------------------ */
#define DUE ((x == pauses && due == 0) || (x == reads && lasting >= READ_DEADLINE) || (x == asks && lasting >= INQUIRY))
:: d_step { !DUE -> printf("-- second\n");
    if :: x == pauses -> due-- :: else -> lasting++ fi;
    proof_age++;
    if :: proof_age >= T -> must_not_reset(); gone = 1 :: else fi }

/* ---- X ---------------------------------------------------------------------------------------------------------- */
:: d_step { x == pauses && due == 0 -> printf("X reads\n"); x = reads; lasting = 0 }
:: d_step { x == reads && api && path -> printf("X finds that it is not condemned\n");
    heard = 1; lifted = 1; outage = 0; proof(lasting); pause(READ_EVERY - lasting) }
:: d_step { x == reads && !(api && path) -> printf("X's read fails\n"); read_failed() }
#ifdef NO_LAST_ANSWER           /* rule 3: however many accuse, the next peer may say "healthy" */
:: d_step { x == asks && 2 * accusers >= PEERS + 1 -> printf("half accuse X\n"); must_not_reset(); gone = 1 }
#endif
:: d_step { x == asks && ALL_ANSWERED -> verdict() }

/* ---- The world -------------------------------------------------------------------------------------------------- */
#ifndef API_UP
:: d_step { api = 1 - api; printf("the API is %d\n", api) }
#endif
:: d_step { path = 1 - path; printf("X's own path to it is %d\n", path) }
PEER(0)
PEER(1)
#if PEERS > 2
PEER(2)
#endif
od
}
