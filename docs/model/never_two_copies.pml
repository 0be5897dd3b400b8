/* Never two copies: the rules of docs/design.md as one state machine. README.md tells why what is left out may be.
 *
 * One host X, its peers, the API and a leader. One step is taken after another, any step that is possible: what a
 * network, a crash, a person or a slow machine can do is a step as well. Two things must hold. When the leader's first
 * destructive write takes effect, no workload runs on X; and X starts none while they may run elsewhere.
 *
 * Time comes in ticks, with any number of steps between two of them. Bounds are closed: a proof may feed while it is at
 * most T old, a watchdog may fire as late as W. Hence the leader must be strictly later.
 *
 * X is as lucky as can be. It reads whenever a read would find it not condemned, it asks its peers all the time, and it
 * lives on for as long as feeding.pml allows: a less lucky X can do nothing that this one can't.
 *
 * NO_<RULE> takes a rule out. LATE_ANSWERS adds answers that arrive later than the state that they report; OTHERS_DELETE adds
 * people who delete Nodes; MISSING adds Machines that vanish and come back. SHOW=<number> makes an error of something
 * that must be possible, lest the model check nothing. Everything else that can be defined is a bound. */

/* ---- Bounds ----------------------------------------------------------------------------------------------------- */
#ifndef T
#define T 1                     /* the self timeout, at most 2 */
#endif
#ifndef LONGER
#define LONGER 0                /* 1: X may promise T + 1 instead, and T again, as often as it likes */
#endif
#ifndef W
#define W 1                     /* the watchdog's timeout, at most 2 */
#endif
#ifndef BOOTS
#define BOOTS 2                 /* boots of X, at most 3; after the last one it stays off, and nothing can go wrong */
#endif
#ifndef IDS
#define IDS 2                   /* condemnations, at most 3; each leader's term needs one */
#endif
#ifndef PEERS
#define PEERS 2                 /* at most 4 */
#endif
#ifndef FIRST
#define FIRST 3                 /* X's peers in version 1 of the roster: bit p is peer p */
#endif
#ifndef SECOND
#define SECOND FIRST            /* ... and in version 2, if that is another one */
#endif
#ifndef SHOW
#define SHOW 0
#endif
#define shown(number) assert(SHOW != number)
#define OLD (T + LONGER + 1)    /* an age that no rule tells from a greater one */

/* ---- The store: Machine, roster, Node --------------------------------------------------------------------------- */
unsigned condemned : 2;         /* the id of X's condemnation, or 0 */
unsigned last_id : 2;           /* the last id, which stays readable when it is lifted, unless somebody takes it away */
#if defined(IDS_TAKEN) || defined(RESTORE)
unsigned drawn : 2;             /* how many ids were drawn: none is drawn twice (rule 9) */
#else
#define drawn last_id
#endif
unsigned roster : 2 = 1;        /* its newest version */
bit there = 1;                  /* X's Node exists */
#ifdef MISSING
bit gone;                       /* X's Machine is missing; if it comes back, then as it was */
bit tainted;                    /* the leader's taint is on X's Node */
unsigned missing_age : 3 = OLD; /* when X can last have read that its Machine is missing */
#define MACHINE_THERE (!gone)
#define TAINTED tainted
#else
#define MACHINE_THERE (1)
#define TAINTED (1)
#endif
bit marker;                     /* ... and bears the marker: its workloads are being freed */
bit bound = 1;                  /* ... and workloads are bound to it */
bit freed;                      /* they may run elsewhere */
mtype = { nothing, given_back, gate_closed, armed_, committed, withdrawn };
mtype record = armed_;          /* what X's agent has stated on the Node; given_back: nothing yet, on the leader's */
unsigned r_boot : 2 = 1; unsigned r_roster : 2 = 1; bit r_longer; unsigned r_id : 2;

/* ---- X ---------------------------------------------------------------------------------------------------------- */
unsigned boot : 2 = 1;
bit armed = 1; bit open = 1; bit running = 1;   /* the watchdog, the gate, the workloads */
bit decided;                    /* to reset */
unsigned proof_age : 3;
unsigned life : 3 = 2 * W;      /* ticks that the watchdog leaves an armed host without another judgement */
unsigned lifted : 4 = 1;        /* bit i: a read, X's own or a peer's for it, has found id i lifted; bit 0: no id */
unsigned x_roster : 2 = 1; bit x_longer;        /* what X promised last, as far as it knows */
mtype write = nothing;          /* X's write to its Node that is under way */
unsigned w_roster : 2; bit w_longer; unsigned w_id : 2;
mtype late = nothing;           /* one that X sent before its reset, and that is still under way */
unsigned l_roster : 2; bit l_longer; unsigned l_id : 2;

/* ---- Peers ------------------------------------------------------------------------------------------------------ */
byte memory[PEERS];             /* the id under which the peer knows X condemned, or 0 */
byte error_age[PEERS];          /* since when it can't have said "api-error" to X any more */

/* ---- The leader ------------------------------------------------------------------------------------------------- */
mtype = { idle, gathers, waits, waits_committed };
mtype phase = idle;
unsigned id : 2;                /* this term's */
unsigned acknowledged : 4; unsigned again : 4;  /* who has, before and after the wait */
unsigned waited : 4;
bit was_off;                    /* what a reading of X's power can have found since the condemnation */
mtype = { delete_node, mark_node };
mtype freeing = nothing;        /* the first destructive write, under way */

#ifdef LATE_ANSWERS
/* What is true already, and not known yet: */
bit reading; unsigned read_age : 3; unsigned read_lifted : 2;     /* X was found not condemned */
unsigned peer_read : 3;         /* 1 + the peer whose read has found X not condemned */
bit w_landed;                   /* X's write is stored */
#endif
#ifdef RESTORE
bit restored;
#endif
#ifdef NO_GATE_RECORD
unsigned c_boot : 2;            /* the boot that X had promised when it was condemned */
#endif
#ifdef NO_UNBROKEN_PROMISE
unsigned p_boot : 2; unsigned p_roster : 2; bit p_longer; /* what X had promised when the leader took it up */
#endif
#ifdef NO_OWN_DELETION
bit backup;                     /* the leader has backed the Node up, to delete it */
#endif
#ifdef NO_FREED_TO_THE_END
bit deletion;                   /* the deletion of a workload, under way */
#endif

/* ---- Words ------------------------------------------------------------------------------------------------------ */
#define has(mask, p) (((mask) >> (p)) & 1)
#define with(mask, p) ((mask) | (1 << (p)))
#define without(mask, p) ((mask) & ~(1 << (p)))
#define count(mask) (has(mask, 0) + has(mask, 1) + has(mask, 2) + has(mask, 3))
#define peers_of(version) ((version) == 1 -> FIRST : SECOND)
#define EVERYBODY ((1 << PEERS) - 1)
#if PEERS == 1
#define each_peer(action) action(0)
#elif PEERS == 2
#define each_peer(action) action(0); action(1)
#elif PEERS == 3
#define each_peer(action) action(0); action(1); action(2)
#else
#define each_peer(action) action(0); action(1); action(2); action(3)
#endif

/* ---- Rule 4: memory --------------------------------------------------------------------------------------------- */
/* An id that X knows to be lifted is old news to it: that very id, not those below it. */
#ifdef NO_MEMORY
#define says_api_error(p) (1)
#else
#define says_api_error(p) has(lifted, memory[p])
#endif
#define may_say(p) if :: says_api_error(p) -> error_age[p] = 0 :: else fi

inline learn(p) {
    memory[p] = condemned;
#if defined(LATE_ANSWERS) && !defined(NO_READ_AFTER_LEARNING)
    if :: peer_read == 1 + p -> peer_read = 0 :: else fi    /* begun before it learned: clears nothing */
#endif
}
/* Whoever forgets has another token from then on, so that what it acknowledged no longer counts (rule 10). */
inline forget(p) { memory[p] = 0; error_age[p] = 0 }
#ifdef NO_TOKENS
#define other_token(p) skip
#else
#define other_token(p) acknowledged = without(acknowledged, p)
#endif
#if defined(NO_TOKENS) || defined(NO_TOKEN_PER_MEMORY)
#define other_memory(p) skip
#else
#define other_memory(p) acknowledged = without(acknowledged, p)
#endif
#ifdef NO_ACKNOWLEDGED_ID
#define knows(p) (memory[p] != 0)
#else
#define knows(p) (memory[p] == id)
#endif

/* ---- Rules 1, 2, 3 and 5: proof, and for how long it lets X live ------------------------------------------------ */
#define errors(version, age) (has(peers_of(version), 0) * (error_age[0] <= age) + ERRORS_1(version, age))
#if PEERS > 1
#define ERRORS_1(version, age) has(peers_of(version), 1) * (error_age[1] <= age) + ERRORS_2(version, age)
#else
#define ERRORS_1(version, age) 0
#endif
#if PEERS > 2
#define ERRORS_2(version, age) has(peers_of(version), 2) * (error_age[2] <= age) + ERRORS_3(version, age)
#else
#define ERRORS_2(version, age) 0
#endif
#if PEERS > 3
#define ERRORS_3(version, age) has(peers_of(version), 3) * (error_age[3] <= age)
#else
#define ERRORS_3(version, age) 0
#endif
#ifdef NO_MAJORITY
#define ABOVE >=
#else
#define ABOVE >                 /* 2(E + 1) > n, X itself counted */
#endif
#define outage_in(version, age) (2 * (errors(version, age) + 1) ABOVE 1 + count(peers_of(version)))

#define PENDING (write == armed_)
#if defined(NO_BOTH)            /* X goes by the old promise until it hears that the new one is stored */
#define outage(age) outage_in(x_roster, age)
#define SELF_TIMEOUT (T + x_longer)
#elif defined(NO_STORED_FIRST)  /* X goes by the new promise as soon as it is sent */
#define outage(age) outage_in((PENDING -> w_roster : x_roster), age)
#define SELF_TIMEOUT (T + (PENDING -> w_longer : x_longer))
#else                           /* while the outcome is unknown, by both */
#define outage(age) (outage_in(x_roster, age) && (!PENDING || outage_in(w_roster, age)))
#define SELF_TIMEOUT (T + (x_longer && (!PENDING || w_longer)))
#endif

inline judge() {
    if :: armed && !decided && proof_age <= SELF_TIMEOUT -> life = 2 * W :: else fi
}
/* X's inquiry: a verdict is dated by its start, so it counts who has said "api-error" since then. */
inline inquire() {
    if
    :: armed ->
#ifdef NO_DATE_OF_START
        if :: outage(OLD - 1) -> proof_age = 0 :: else fi;
#else
        if
        :: proof_age > 0 && outage(0) -> proof_age = 0;
            if :: condemned != 0 -> shown(1) :: else fi
        :: else
        fi;
        if :: proof_age > 1 && outage(1) -> proof_age = 1 :: else fi;
#if T + LONGER > 1
        if :: proof_age > 2 && outage(2) -> proof_age = 2 :: else fi;
#endif
#if T + LONGER > 2
        if :: proof_age > 3 && outage(3) -> proof_age = 3 :: else fi;
#endif
#endif
        judge()
    :: else
    fi
}
/* A read of X's Machine, its own or a peer's for it. It takes effect when it is sent: later, no proof is younger. */
inline find_not_condemned() {
    if
    :: condemned == 0 && MACHINE_THERE -> proof_age = 0; lifted = with(lifted, last_id); each_peer(may_say);
#ifdef NO_OWED_RESET            /* rule 7: a proof that comes later talks X out of it */
        decided = 0;
#endif
        judge()
    :: else
    fi
}
#define grow_older(p) if :: error_age[p] < OLD && !says_api_error(p) -> error_age[p]++ :: else fi

/* ---- Rules 5 and 6: what X states on its Node ------------------------------------------------------------------- */
#ifdef LATE_ANSWERS
#define not_landed (!w_landed)
#define landed_is(value) w_landed = value
#else
#define not_landed (1)
#define landed_is(value) skip
#endif
inline no_write() { write = nothing; w_roster = 0; w_longer = 0; w_id = 0; landed_is(0) }
inline no_late() { late = nothing; l_roster = 0; l_longer = 0; l_id = 0 }
inline send(what, new_roster, new_longer, new_id) {
    inquire();                  /* what its peers have said until now counts by the promise until now */
    write = what; w_roster = new_roster; w_longer = new_longer; w_id = new_id; landed_is(0)
}
inline promise(longer) {
    if
    :: !(record == armed_ && r_boot == boot) -> x_roster = roster; x_longer = LONGER    /* no other binds it */
    :: else
    fi;
    send(armed_, roster, longer, 0)
}
inline hear() {                 /* that the write is stored */
    if
    :: write == armed_ -> x_roster = w_roster; x_longer = w_longer; open = 1
    :: write == withdrawn -> armed = 0; life = 0; open = 1
    :: else
    fi;
    no_write();
    inquire()
}
/* A write is conditional on the version that its sender read, so each one that lands ends all others under way. */
inline node_changed() {
#ifndef NO_CONDITIONAL_WRITES
    if :: write != nothing && not_landed -> no_write() :: else fi;
    no_late();
#endif
#ifndef NO_DELETED_VERSION
    freeing = nothing;
#endif
    skip
}
inline state(what, of_boot, of_roster, of_longer, of_id) {
    record = what; r_boot = of_boot; r_id = of_id;
    if :: what == armed_ -> r_roster = of_roster; r_longer = of_longer :: else fi;
    if
    :: phase != idle ->
#ifndef NO_EVIDENCE_PROMISE     /* rule 11: evidence counts while the Node says what it said when X was condemned */
        if :: of_boot == boot -> was_off = 0 :: else fi;
#endif
#if !defined(NO_SAME_PROMISE) && !defined(NO_UNBROKEN_PROMISE)
        /* Rule 12: another promise, if only for a moment, ends the wait. "Committed" repeats the one that there is. */
        if :: what != committed || of_boot != boot -> phase = gathers; take_up() :: else fi;
#endif
        skip
    :: else
    fi
}
inline no_node() {
#ifdef MISSING
    tainted = 0;
#endif
    there = 0; record = nothing; r_boot = 0; r_roster = 1; r_longer = 0; r_id = 0
}
inline reset_x() {
#ifdef NO_EVIDENCE_AFTER        /* rule 11: a reading that began before the condemnation counts */
    was_off = 1;
#else
    if :: phase != idle -> was_off = 1 :: else fi;
#endif
    armed = 0; open = 0; running = 0; decided = 0; proof_age = OLD; life = 0; lifted = 1; x_roster = 1; x_longer = 0;
#ifdef MISSING
    missing_age = (gone -> 0 : OLD);
#endif
#ifdef LATE_ANSWERS
    reading = 0; read_age = 0; read_lifted = 0;
#endif
    if
    :: write != nothing && not_landed -> late = write; l_roster = w_roster; l_longer = w_longer; l_id = w_id
    :: else
    fi;
    no_write();
    boot++; find_not_condemned()
}

/* ---- Rules 9 to 12: when the leader may act --------------------------------------------------------------------- */
#ifdef NO_PROMISED_ROSTER
#define ASKED peers_of(roster)
#else
#define ASKED peers_of(r_roster)
#endif
#ifdef NO_HALF
#define is_half(mask) (count((mask) & ASKED) >= 1)
#else
#define is_half(mask) (2 * count((mask) & ASKED) >= 1 + count(ASKED))
#endif
#ifdef NO_PROMISED_T
#define PROMISED_T T
#else
#define PROMISED_T (T + r_longer)
#endif
#ifdef NO_SECOND_W
#define WAIT (PROMISED_T + W + 1)
#else
#define WAIT (PROMISED_T + 2 * W + 1)
#endif
#define LONGEST_WAIT (T + LONGER + 2 * W + 1)
#ifdef NO_ASKING_AGAIN
#define ASKED_AGAIN (1)
#else
#define ASKED_AGAIN is_half(again)
#endif
#ifdef NO_CHECK
#define STANDS (1)
#else
#define STANDS (condemned == id && MACHINE_THERE)
#endif
#ifdef NO_GATE_RECORD           /* the boot that the kubelet reports is enough */
#define NOTHING_STARTED (boot != c_boot)
#else
#define NOTHING_STARTED (record == gate_closed || record == given_back)
#endif
#ifdef NO_COMMITTED_ID
#define IS_COMMITTED (record == committed)
#else
#define IS_COMMITTED (record == committed && r_id == id)
#endif
#ifdef NO_COMMITTED_WAIT
#define COMMITTED_WAIT 0
#else
#define COMMITTED_WAIT (W + 1)
#endif
#ifdef NO_UNBROKEN_PROMISE       /* rule 12: that it is the same now is enough */
#define SAME_PROMISE (r_boot == p_boot && r_roster == p_roster && r_longer == p_longer)
#else
#define SAME_PROMISE (1)        /* else the wait has ended */
#endif
#define PROMISES ((record == armed_ || record == committed) && SAME_PROMISE)
#define MAY_FREE (there && TAINTED && !freed && freeing == nothing && STANDS)

inline free_node(how) {
    no_term(); freeing = how;
#ifdef NO_OWN_DELETION
    backup = (how == delete_node);
#endif
    skip
}
inline take_up() { acknowledged = 0; again = 0; waited = 0 }
inline no_term() {
    phase = idle; id = 0; take_up();
#ifndef NO_EVIDENCE_AFTER
    was_off = 0
#endif
}
inline office(new_id) {
    no_term(); phase = gathers; id = new_id;
#ifdef NO_GATE_RECORD
    c_boot = r_boot;
#endif
#ifdef NO_UNBROKEN_PROMISE
    p_boot = r_boot; p_roster = r_roster; p_longer = r_longer;
#endif
    skip
}
inline lapse() {
#if !defined(NO_LAPSE) && !defined(NO_CHECK)
    no_term()                   /* rule 9: void, even if the same value is put back */
#endif
    skip
}

#define PEER(p) \
:: d_step { condemned != 0 && MACHINE_THERE && memory[p] != condemned -> \
    printf("peer %d learns of condemnation %d\n", p, condemned); learn(p) } \
:: d_step { memory[p] != 0 -> printf("peer %d restarts and forgets\n", p); forget(p); other_token(p); \
    inquire() } \
:: d_step { phase == gathers && !has(acknowledged, p) && has(ASKED, p) && knows(p) -> \
    printf("peer %d acknowledges\n", p); acknowledged = with(acknowledged, p) } \
:: d_step { phase == waits && waited >= WAIT && has(acknowledged, p) && !has(again, p) && knows(p) -> \
    printf("peer %d acknowledges again\n", p); again = with(again, p) } \
PEER_READ(p)

#ifdef LATE_ANSWERS
#define PEER_READ(p) \
:: d_step { peer_read == 0 && condemned == 0 && MACHINE_THERE -> \
    printf("a read by peer %d finds X not condemned\n", p); peer_read = 1 + p } \
:: d_step { peer_read == 1 + p -> printf("its answer reaches peer %d, which forgets\n", p); \
    peer_read = 0; forget(p); other_memory(p); inquire() }
#else
#define PEER_READ(p) \
:: d_step { memory[p] != 0 && condemned == 0 && MACHINE_THERE -> \
    printf("peer %d reads that X is not condemned, and forgets\n", p); forget(p); other_memory(p); inquire() }
#endif

init {
do
/* ---- Time. It does not pass a watchdog that must fire. ---------------------------------------------------------- */
:: d_step { !(armed && life == 0) -> printf("-- tick\n");
    inquire();
    if :: life > 0 -> life-- :: else fi;
    if :: proof_age < OLD -> proof_age++ :: else fi;
    each_peer(grow_older);
    if :: (phase == waits || phase == waits_committed) && waited < LONGEST_WAIT -> waited++ :: else fi;
#ifdef MISSING
    if :: !gone && missing_age < OLD -> missing_age++ :: else fi;
#endif
#ifdef LATE_ANSWERS
    if
    :: reading && read_age < OLD -> read_age++
#ifndef NO_DATE_OF_SENDING
    :: reading && read_age == OLD -> reading = 0; read_age = 0; read_lifted = 0     /* it can't prove anything now */
#endif
    :: else
    fi;
#endif
    find_not_condemned(); inquire();
#ifdef NO_FEED_BY_JUDGEMENT     /* rule 2: a thread of its own feeds, whatever the judgement */
    if :: armed -> life = 2 * W :: else fi
#endif
    }

/* ---- X ---------------------------------------------------------------------------------------------------------- */
#ifdef NO_LINEARIZABLE_READ
:: d_step { armed && condemned != 0 -> printf("a cache says that X is not condemned\n"); proof_age = 0; judge() }
#endif
#ifdef NO_STATE_IN_RUN
:: d_step { armed && !decided -> printf("X's agent restarts, and takes that for a proof\n"); proof_age = 0; judge() }
#endif
#ifdef LATE_ANSWERS
:: d_step { !reading && condemned == 0 && MACHINE_THERE -> printf("X's read finds it not condemned\n");
    reading = 1; read_age = 0; read_lifted = last_id }
:: d_step { reading -> printf("the answer reaches X\n");
#ifdef NO_DATE_OF_SENDING
    proof_age = 0;
#else
    proof_age = (read_age < proof_age -> read_age : proof_age);
#endif
#ifdef NO_LIFTED_AS_READ        /* rule 4: an id counts as lifted that the read did not find lifted */
    lifted = with(lifted, last_id);
#else
    lifted = with(lifted, read_lifted);
#endif
    each_peer(may_say);
#ifdef NO_OWED_RESET
    decided = 0;
#endif
    reading = 0; read_age = 0; read_lifted = 0; judge() }
#ifdef NO_FRESH_PEER_READ       /* rule 1: a read that was under way when the question came proves nothing */
:: d_step { armed && peer_read != 0 -> printf("peer %d confirms X by an older read\n", peer_read - 1);
    proof_age = 0; judge() }
#endif
#endif
#ifdef MISSING                  /* rule 1: its Machine is missing, and a later read finds its Node untouched */
#ifdef NO_TAINT_FIRST           /* rule 9: the Node is not tainted before the Machine is condemned */
#define UNTOUCHED (there && !marker && record == armed_ && r_boot == boot)
#else
#define UNTOUCHED (there && !tainted && !marker && record == armed_ && r_boot == boot)
#endif
:: d_step { armed && missing_age < OLD && missing_age < proof_age && UNTOUCHED ->
    printf("X's Machine was missing, and its Node is untouched\n");
    if :: condemned != 0 -> shown(10) :: else fi;
#ifdef NO_DATE_OF_MISSING       /* it counts from the second read */
    proof_age = 0;
#else
    proof_age = missing_age;
#endif
    judge() }
#endif
/* Rule 7. From whatever it learned, it may decide at any time; what it knows of is some condemnation. */
:: d_step { armed && !decided && write == nothing && last_id > 0 && there && record == armed_ && r_boot == boot ->
    printf("X decides to reset: committed, %d\n", last_id); send(committed, 0, 0, last_id);
    decided = 1; life = (life < W -> life : W) }
:: d_step { armed && !decided && write == nothing && last_id > 1 && there && record == armed_ && r_boot == boot ->
    printf("X decides to reset: committed, 1\n"); send(committed, 0, 0, 1);
    decided = 1; life = (life < W -> life : W) }
/* By itself, by its watchdog, or because somebody pulls the plug; and once for good. */
:: d_step { boot < BOOTS -> printf("X resets\n"); reset_x() }
:: boot == BOOTS -> break

:: d_step { !armed && !open && write == nothing && there && r_boot != boot ->
    printf("X sends: boot %d, gate closed\n", boot); send(gate_closed, 0, 0, 0) }
:: d_step { !armed && proof_age <= T && write == nothing -> printf("X arms\n"); armed = 1; judge() }
#ifdef NO_MARKER
#define MAY_STATE (!decided && write == nothing && there)
#else
#define MAY_STATE (!decided && write == nothing && there && (open || !marker))    /* rule 12 */
#endif
#define STATED(with_longer) (record == armed_ && r_boot == boot && r_roster == roster && r_longer == with_longer)
:: d_step { armed && MAY_STATE && !STATED(0) -> printf("X sends: boot %d, armed, roster %d, T\n", boot, roster);
    promise(0) }
#if LONGER
:: d_step { armed && MAY_STATE && !STATED(1) ->
    printf("X sends: boot %d, armed, roster %d, longer T\n", boot, roster); promise(1) }
#endif
/* For maintenance: the workloads run on, or start, and nothing is promised. */
:: d_step { (armed || !open) && MAY_STATE && !(record == withdrawn && r_boot == boot) ->
    printf("X sends: boot %d, withdrawn\n", boot);
    send(withdrawn, 0, 0, 0);
#ifdef NO_WITHDRAWN_FIRST
    armed = 0; life = 0;
#endif
    skip }
:: d_step { write != nothing && not_landed && there -> printf("X's write is stored\n");
    state(write, boot, w_roster, w_longer, w_id);
#ifdef LATE_ANSWERS
    w_landed = 1; node_changed() }
:: d_step { write != nothing && w_landed -> printf("X hears that its write is stored\n");
    hear() }
#else
    hear(); node_changed() }
#endif
:: d_step { late != nothing && there -> printf("a write from X's last boot is stored\n");
    state(late, boot - 1, l_roster, l_longer, l_id); no_late(); node_changed(); shown(9) }

/* Rule 6: the kubelet starts what is bound to the Node once the gate is open. */
#if defined(NO_GATE)
#define MAY_START (1)
#elif defined(NO_STORED_GATE)
#define MAY_START (open || PENDING)
#else
#define MAY_START open
#endif
:: d_step { !running && bound && MAY_START -> printf("X's kubelet starts the workloads\n");
    running = 1; assert(!freed);
    if :: record == armed_ && condemned != 0 -> shown(2) :: else fi }

/* ---- Others: a person, a tool that restores objects, a cluster that grows or shrinks ---------------------------- */
:: d_step { condemned != 0 -> printf("somebody lifts the condemnation\n");
    condemned = 0; lapse(); find_not_condemned() }
:: d_step { condemned == 0 && last_id > 0 -> printf("somebody puts condemnation %d back\n", last_id);
    condemned = last_id; lapse() }
#ifdef OTHERS_DELETE            /* a Node that the kubelet of a living host recreates, with nothing of ours on it */
:: d_step { there && !freed -> printf("somebody else deletes the Node\n");
    no_node(); marker = 0; node_changed();
    if :: phase != idle -> phase = gathers; take_up() :: else fi }
:: d_step { !there && !freed && running -> printf("X's kubelet recreates its Node\n"); there = 1; node_changed();
#ifdef NO_OWN_DELETION          /* the leader takes it for one that it has deleted itself */
    if :: backup -> record = given_back :: else fi;
#endif
    skip }
#ifdef NO_OWN_DELETION
:: d_step { backup && !there && !freed && condemned != 0 -> printf("a leader finds a backup and no Node: frees\n");
    freed = 1; backup = 0; assert(!running) }
:: d_step { backup -> printf("a leader drops the backup\n"); backup = 0 }
#endif
#endif
#ifdef MISSING
:: d_step { !gone -> printf("the Machine vanishes\n"); gone = 1; missing_age = 0;
#ifndef NO_LAPSE_OF_MISSING
    lapse();
#endif
    skip }
:: d_step { gone -> printf("the Machine is back as it was\n"); gone = 0; find_not_condemned() }
:: d_step { tainted -> printf("somebody removes the taint\n"); tainted = 0; node_changed();
    if :: phase != idle -> phase = gathers; take_up() :: else fi }
:: d_step { there && !freed && !tainted -> printf("the leader taints the Node\n"); tainted = 1; node_changed() }
#endif
#ifdef IDS_TAKEN
:: d_step { condemned == 0 && last_id > 0 -> printf("somebody takes the last id away\n"); last_id = 0;
#ifdef NO_UNIQUE_IDS            /* rule 9: the next id is drawn from what is readable */
    drawn = 0;
#endif
    lapse() }
#endif
#ifdef RESTORE                  /* Machine and Node as they were at the beginning of this boot */
:: d_step { !restored && boot == 1 && there && !freed && record == armed_ && r_boot == 1 && write == nothing ->
    printf("etcd is restored from a backup\n"); restored = 1;
    condemned = 0; last_id = 0; lapse(); r_roster = 1; r_longer = 0; node_changed() }
#endif
:: d_step { FIRST != SECOND && roster == 1 -> printf("the roster's version 2\n"); roster = 2 }

/* ---- Peers ------------------------------------------------------------------------------------------------------ */
PEER(0)
#if PEERS > 1
PEER(1)
#endif
#if PEERS > 2
PEER(2)
#endif
#if PEERS > 3
PEER(3)
#endif

/* ---- The leader. A term may end at any time, and the next one begins by condemning (rules 9 and 13). ------------ */
:: d_step { there && !freed && TAINTED && MACHINE_THERE && drawn < IDS -> drawn++; printf("a leader condemns X: %d\n", drawn);
    last_id = drawn; condemned = drawn; office(drawn) }
#ifdef NO_FRESH_ID
:: d_step { there && !freed && condemned != 0 -> printf("a leader takes condemnation %d over\n", condemned);
    office(condemned) }
#endif
#ifdef NO_OWN_CLOCK
:: d_step { there && !freed && condemned != 0 -> printf("a leader trusts the clock of the one before\n");
    office(condemned); phase = waits; waited = LONGEST_WAIT; acknowledged = EVERYBODY }
#endif
:: d_step { phase == gathers && PROMISES && TAINTED && is_half(acknowledged) -> printf("the wait begins\n");
    phase = waits; waited = 0 }
#ifdef NO_UNBROKEN_PROMISE
:: d_step { phase != idle && phase != waits_committed && !SAME_PROMISE -> printf("the leader takes up a new promise\n");
    phase = gathers; take_up(); p_boot = r_boot; p_roster = r_roster; p_longer = r_longer }
#endif
#define DEAD_BY_WAITING (phase == waits && waited >= WAIT && PROMISES && ASKED_AGAIN && MAY_FREE)
:: d_step { DEAD_BY_WAITING -> printf("the leader has waited: deletes the Node\n"); free_node(delete_node);
    shown(3) }
:: d_step { DEAD_BY_WAITING -> printf("the leader has waited: marks the Node\n"); free_node(mark_node) }
#define IN_OFFICE (phase == gathers || phase == waits)
#define DEAD_BY_EVIDENCE (IN_OFFICE && (NOTHING_STARTED || was_off) && MAY_FREE)
:: d_step { DEAD_BY_EVIDENCE -> printf("the leader sees evidence: deletes the Node\n");
    if :: record == gate_closed -> shown(4) :: record == given_back -> shown(5) :: else -> shown(6) fi;
    free_node(delete_node) }
:: d_step { DEAD_BY_EVIDENCE -> printf("the leader sees evidence: marks the Node\n"); free_node(mark_node) }
:: d_step { IN_OFFICE && IS_COMMITTED -> printf("the leader sees that X is committed\n");
    take_up(); phase = waits_committed }
:: d_step { phase == waits_committed && waited >= COMMITTED_WAIT && IS_COMMITTED && MAY_FREE ->
    printf("the leader has waited W: deletes the Node\n"); free_node(delete_node); shown(7) }

:: d_step { freeing != nothing && there && !freed -> printf("the leader's write is stored\n");
    freed = 1;
    if :: freeing == delete_node -> no_node() :: else -> marker = 1 fi;
    freeing = nothing; node_changed();
    assert(!running);
    if :: boot == 2 -> shown(8) :: else fi }
:: d_step { freed && bound -> printf("the workloads are gone\n"); bound = 0 }
#ifdef NO_FREED_TO_THE_END
:: d_step { freed && bound && condemned == 0 -> printf("the Node is given back before the workloads are gone\n");
    there = 1; marker = 0; freed = 0; deletion = 1; node_changed() }
:: d_step { deletion -> printf("the deletion of a workload takes effect\n"); deletion = 0; assert(!running) }
#endif
:: d_step { freed && !bound -> printf("the Node is given back\n");
    if :: !there -> there = 1; record = given_back :: else fi;
    marker = 0; freed = 0; bound = 1; node_changed() }
od
}
