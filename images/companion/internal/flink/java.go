// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/memory"
)

// Main classes of Flink's two roles.
const (
	jobManagerMain  = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
	taskManagerMain = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
)

// scheme of paths: Flink takes no path without one.
const scheme = "file://"

// opened are the parts of Java from version 17 on that Flink reaches into, as its own configuration lists them.
var opened = []string{
	"--add-exports=java.base/sun.net.util=ALL-UNNAMED", "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
	"--add-exports=jdk.compiler/com.sun.tools.javac.api=ALL-UNNAMED", "--add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED",
	"--add-exports=jdk.compiler/com.sun.tools.javac.parser=ALL-UNNAMED", "--add-exports=jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED",
	"--add-exports=jdk.compiler/com.sun.tools.javac.util=ALL-UNNAMED", "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
	"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.io=ALL-UNNAMED",
	"--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
	"--add-opens=java.base/java.lang.reflect=ALL-UNNAMED", "--add-opens=java.base/java.text=ALL-UNNAMED",
	"--add-opens=java.base/java.time=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED",
	"--add-opens=java.base/java.util.concurrent=ALL-UNNAMED", "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
	"--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
}

// security makes Java ask for a name again after a moment: the pod with a name has another address once it is another pod.
const security = "networkaddress.cache.ttl=5\nnetworkaddress.cache.negative.ttl=1\n"

// logging goes to the output of the pod.
const logging = `rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
logger.pekko.name = org.apache.pekko
logger.pekko.level = WARN
logger.netty.name = org.apache.flink.shaded.netty4.io.netty.channel.DefaultChannelPipeline
logger.netty.level = OFF
`

// common options of both roles.
func (c Config) common() map[string]string {
	return map[string]string{
		"jobmanager.rpc.address":        c.Plan.JobManager,
		"jobmanager.rpc.port":           strconv.Itoa(c.Plan.RPCPort()),
		"taskmanager.numberOfTaskSlots": strconv.Itoa(c.Plan.Slots),
		"io.tmp.dirs":                   filepath.Join(c.Scratch, "tmp"),
	}
}

// jobManagerOptions of Flink.
func (c Config) jobManagerOptions() map[string]string {
	p := c.Plan
	all := c.common()
	maps.Copy(all, map[string]string{
		"jobmanager.bind-host": c.Bind,
		"rest.address":         c.Loopback,
		"rest.bind-address":    c.Loopback,
		"rest.port":            strconv.Itoa(flink.RestPort),
		"rest.bind-port":       strconv.Itoa(flink.RestPort),
		"web.submit.enable":    "false",
		"blob.server.port":     strconv.Itoa(flink.BlobPort),

		// The parallelism is what there are slots, and changes soon after their number did.
		"scheduler-mode": "reactive",
		"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling":       "10 s",
		"jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "20 s",
		// A TaskManager that is gone without a word is missed after 20 s, not 50 s.
		"heartbeat.interval": "5 s",
		"heartbeat.timeout":  "20 s",

		"execution.checkpointing.dir":                               scheme + p.Checkpoints(),
		"execution.checkpointing.savepoint-dir":                     scheme + p.Savepoints(),
		"execution.checkpointing.interval":                          strconv.Itoa(p.CheckpointSeconds) + " s",
		"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
		"execution.checkpointing.num-retained":                      "2",
		"execution.checkpointing.tolerable-failed-checkpoints":      "10",
	})
	if p.MaxParallelism > 0 {
		all["pipeline.max-parallelism"] = strconv.Itoa(p.MaxParallelism)
	}
	return all
}

// taskManagerOptions of Flink.
func (c Config) taskManagerOptions() map[string]string {
	all := c.common()
	maps.Copy(all, map[string]string{
		"taskmanager.bind-host": c.Bind,
		"taskmanager.data.port": strconv.Itoa(flink.DataPort),
		"taskmanager.rpc.port":  strconv.Itoa(flink.TaskRPCPort),
		"heartbeat.interval":    "5 s",
		"heartbeat.timeout":     "20 s",
	})
	if c.Host != "" {
		all["taskmanager.host"] = c.Host
	}
	return all
}

// jobManager is the process of a JobManager that begins with a state, or without one.
func (c Config) jobManager(from *flink.Saved) (*exec.Cmd, error) {
	division, err := memory.JobManager(c.Limit)
	if err != nil {
		return nil, err
	}
	p := c.Plan
	args := []string{"--job-id", p.JobID}
	if p.MainClass != "" {
		args = append(args, "--job-classname", p.MainClass)
	}
	if p.Jar != "" {
		args = append(args, "--jars", p.Jar)
	}
	if from != nil {
		// Flink leaves what it starts from to us: its entry point for a cluster with one job cannot claim it. So the way back stays.
		args = append(args, "--fromSavepoint", scheme+from.Path)
		if p.AllowNonRestoredState {
			args = append(args, "--allowNonRestoredState")
		}
	}
	return c.process(jobManagerMain, c.jobManagerOptions(), division, append(args, p.Args...))
}

// taskManager is the process of a TaskManager.
func (c Config) taskManager() (*exec.Cmd, error) {
	division, err := memory.TaskManager(c.Limit, c.CPUs, c.Plan.Config)
	if err != nil {
		return nil, err
	}
	return c.process(taskManagerMain, c.taskManagerOptions(), division, nil)
}

// process of Flink with its configuration in files. What the user configured comes first, so that it replaces no option of ours.
func (c Config) process(main string, options map[string]string, division memory.Division, args []string) (*exec.Cmd, error) {
	conf := filepath.Join(c.Scratch, "conf")
	for _, dir := range []string{conf, filepath.Join(c.Scratch, "tmp")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("cannot configure Flink: %w", err)
		}
	}
	all := map[string]string{}
	for key, value := range c.Plan.Config {
		if flink.Reserved(key) {
			return nil, fmt.Errorf("config has %s, which Capstan sets itself: remove it", key)
		}
		all[key] = value
	}
	maps.Copy(all, options)
	maps.Copy(all, division.Options)
	yaml, err := lines(all)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"config.yaml": yaml, "log4j-console.properties": logging, "java.security": security} {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("cannot configure Flink: %w", err)
		}
	}
	java := slices.Concat(
		division.Flags,
		[]string{
			"-XX:+ExitOnOutOfMemoryError", "-Dlog4j.configurationFile=file:" + filepath.Join(conf, "log4j-console.properties"),
			"-Djava.security.properties=" + filepath.Join(conf, "java.security"),
		},
		opened,
		[]string{"-classpath", filepath.Join(c.Home, "lib", "*"), main, "--configDir", conf},
		args,
	)
	cmd := exec.Command(c.Java, java...)
	cmd.Dir = c.Scratch
	cmd.Env = append(os.Environ(),
		"FLINK_HOME="+c.Home, "FLINK_CONF_DIR="+conf, "FLINK_LIB_DIR="+filepath.Join(c.Home, "lib"),
		"FLINK_OPT_DIR="+filepath.Join(c.Home, "opt"), "FLINK_PLUGINS_DIR="+filepath.Join(c.Home, "plugins"))
	return cmd, nil
}

// lines of YAML, in order.
func lines(options map[string]string) (string, error) {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(options)) {
		value, err := json.Marshal(options[key])
		if err != nil {
			return "", fmt.Errorf("cannot configure Flink: %w", err)
		}
		fmt.Fprintf(&out, "%s: %s\n", key, value)
	}
	return out.String(), nil
}
