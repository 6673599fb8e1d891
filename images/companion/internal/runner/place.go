// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/runner"
)

// A place is where in a run a pod is.
type place struct {
	job, host string
	index     int
}

// environment of the processes by the place, the plan and the attempt.
func (p place) environment(plan runner.Plan, attempt int) []string {
	run, scheduled := plan.Run, ""
	if minutes, ok := p.minutes(plan.Pipeline); run == "" && ok {
		run, scheduled = strconv.FormatInt(minutes, 10), time.Unix(minutes*60, 0).UTC().Format(time.RFC3339)
	}
	domain := ""
	if plan.Domain != "" {
		domain = "." + plan.Domain
	}
	all := []string{
		runner.EnvJob + "=" + p.job,
		runner.EnvRun + "=" + run,
		runner.EnvScheduledAt + "=" + scheduled,
		runner.EnvAttempt + "=" + strconv.Itoa(attempt),
		runner.EnvHost + "=" + p.host + domain,
		runner.EnvLeader + "=" + p.job + "-0" + domain,
	}
	// Python buffers what is not written to a terminal. A value of the container stays.
	if _, set := os.LookupEnv("PYTHONUNBUFFERED"); !set {
		all = append(all, "PYTHONUNBUFFERED=1")
	}
	return all
}

// minutes since 1970 that a CronJob of the name of a Pipeline puts at the end of the name of a Job.
func (p place) minutes(pipeline string) (int64, bool) {
	text, ok := strings.CutPrefix(p.job, pipeline+"-")
	if !ok {
		return 0, false
	}
	text, _, _ = strings.Cut(text, "-") // With more memory, the number of the attempt follows.
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && n < 1<<33
}

// expand $(NAME) in a text by variables of the form NAME=value, and $$ to a dollar. An unknown name stays as it is, as in Kubernetes.
func expand(text string, environment []string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i:]
		switch end := strings.IndexByte(text, ')'); {
		case text[1] == '$':
			b.WriteByte('$')
			text = text[2:]
		case text[1] == '(' && end > 0:
			value, known := lookup(environment, text[2:end])
			if !known {
				value = text[:end+1]
			}
			b.WriteString(value)
			text = text[end+1:]
		default:
			b.WriteByte('$')
			text = text[1:]
		}
	}
}

// lookup the last value of a variable.
func lookup(environment []string, name string) (string, bool) {
	for i := len(environment) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environment[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}
