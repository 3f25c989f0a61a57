# Runs a program and ends it, with all that it started, when the pipe behind the file descriptor ends.
# Called with: the descriptor's number, milliseconds between TERM and KILL, the program, its arguments.
control=$1 rounds=$(($2 / 100 + 1))
shift 2
# The program gets the PATH that was meant for it, or none; this script finds its own helpers.
case $(export -p) in *' PATH='*) theirs=PATH=$PATH ;; *) theirs= ;; esac
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
mark=RETHREAD_GUARD=$$.$(date +%s 2>/dev/null)

# A job in the background would get nothing to read, were its input not named.
exec 3<&0
env "$mark" ${theirs:+"$theirs"} "$@" <&3 3<&- &
cli=$!
# From here on only the program holds the pipes.
exec </dev/null >/dev/null 2>&1 3<&-

# Prints all that descends from a process, those who began a group or session of their own too.
below() {
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    echo "$child"
    below "$child"
  done
}

# Prints who carries the mark: orphans keep it when they have lost their parents.
marked() {
  grep -laF "$mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

# Prints who is in the group of this script, as everybody is who did not leave it.
grouped() {
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    process=${stat#/proc/}
    # A program's name may hold anything, brackets too. After it come its state, its parent and its group.
    set -- ${line##*)}
    [ "$3" != $$ ] || echo "${process%/stat}"
  done 2>/dev/null
}

# Sends a signal to everybody but this script and those who help it.
signal_all() {
  for process in $([ -z "$cli" ] || below "$cli"; marked; grouped); do
    case $process in $$ | "$helper") ;; *) kill "-$1" "$process" ;; esac
  done
}

# Waits until nobody carries the mark any more, or for as long as was asked for, and then asks no longer.
end_all() {
  round=0
  while [ "$round" -lt "$rounds" ] && [ -n "$(marked)" ]; do
    sleep 0.1
    round=$((round + 1))
  done
  # Twice, for whoever was born in between.
  signal_all KILL
  signal_all KILL
}

(
  helper=$(exec sh -c 'echo $PPID')
  read -r _ <"/dev/fd/$control"
  kill -TERM "$cli"
  # When the program ends by itself, the script goes on below instead.
  end_all
  kill -KILL 0
) &
helper=$!

wait "$cli"
status=$?
# The number may soon be somebody else's, so that nobody must use it any more.
kill -KILL "$helper"
cli=
signal_all TERM
end_all
exit "$status"
