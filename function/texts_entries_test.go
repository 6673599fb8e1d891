// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// observedFrom names the examples whose objects are observed with documents of this package.
var observedFrom = map[string]string{
	"testdata/texts/hooks-of-algorithm.yaml": "../examples/algorithm/hooks/xr.yaml",
	"testdata/texts/hooks-of-database.yaml":  "../examples/database/hooks/xr.yaml",
}

// Places where texts of several fields go.
const (
	inArgs        = "Deployment.spec.template.spec.containers[].args[]"
	inImage       = "Deployment.spec.template.spec.containers[].image"
	inInitImage   = "Deployment.spec.template.spec.initContainers[].image"
	inMount       = "Deployment.spec.template.spec.containers[].volumeMounts[].mountPath"
	inPinned      = "ControllerRevision.data.template.spec.containers[].env[].value"
	inPinnedImage = "ControllerRevision.data.template.spec.containers[].image"
	inVariable    = "Deployment.spec.template.spec.containers[].env[].value"
	inChecks      = "Analysis.spec.forProvider.metrics.checks[].query"
	inScaling     = "Analysis.spec.forProvider.metrics.scaling.query"
	inCanary      = "Analysis.spec.forProvider.metrics.canary.checks[].query"
	inJobVariable = "Job.spec.template.spec.containers[].env[].value"
	inJobArgs     = "Job.spec.template.spec.containers[].args[]"
	inJobMount    = "Job.spec.template.spec.containers[].volumeMounts[].mountPath"
	inJobSubPath  = "Job.spec.template.spec.containers[].volumeMounts[].subPath"
	inPlan        = "ConfigMap.data.plan.json|"
	inCronJobArgs = "CronJob.spec.jobTemplate.spec.template.spec.containers[].args[]"
	inPodPlan     = "Job.spec.template.metadata.annotations.capstan.dev/plan|"
	inTaskPlan    = "Deployment.spec.template.metadata.annotations.capstan.dev/plan|"
	inFlinkPlan   = "StatefulSet.spec.template.metadata.annotations.capstan.dev/plan|"
	noClaims      = "No pod of Flink has claims of devices: TestRefused in function/pipeline."
	inLineage     = "Lineage.spec.forProvider."
	inRotation    = "Credential.spec.forProvider.rotation.id"
	inMember      = "StatefulSet.spec.template.spec.containers[].env[].value"
	inBackup      = "CronJob.spec.jobTemplate.spec.template.spec.containers[].env[].value"
	inInputs      = "StatefulSet.metadata.annotations.capstan.dev/revision-of"
)

// An entry of a field that accepts hostile texts.
type entry struct {
	// places of composed objects where the text goes.
	places []string

	// nowhere says why it goes to none, or what else tries it.
	nowhere string
	// refused says why no document with the field is accepted, although the schema has it.
	refused string
}

func to(places ...string) *entry { return &entry{places: places} }

// texts are the fields of composite resources that accept a hostile text, and the places of composed objects where it goes.
func texts() map[string]*entry {
	queries := "Analysis.spec.forProvider.metrics.queries."
	later := &entry{nowhere: "It is composed after a restart, by the code that composes hooks before it."}
	// The API server's own defaults and checks for pods of the standard "restricted".
	container := &entry{nowhere: "Containers are checked as a whole: TestOverlayRefused and TestHookSpecs in function/algorithm."}
	return map[string]*entry{
		"Algorithm.spec.lifecycle.hooks[].job{any}":                                         container,
		"Algorithm.spec.pod.initContainers[]{any}":                                          container,
		"Algorithm.spec.pod.initContainers[].securityContext{any}":                          container,
		"Algorithm.spec.pod.containers[]{any}":                                              container,
		"Algorithm.spec.pod.containers[].securityContext{any}":                              container,
		"Algorithm.spec.pod.volumes[]{any}":                                                 {nowhere: "Volumes are checked as a whole: TestOverlayRefused and TestOverlaySettings in function/algorithm."},
		"Algorithm.spec.args[]":                                                             to(inArgs),
		"Algorithm.spec.command[]":                                                          to("Deployment.spec.template.spec.containers[].command[]"),
		"Algorithm.spec.config{}":                                                           to("ConfigMap.data.rules.yaml"),
		"Algorithm.spec.env[].value":                                                        to(inVariable),
		"Algorithm.spec.image":                                                              to(inImage),
		"Algorithm.spec.lifecycle.hooks[].job.image":                                        to("Job.spec.template.spec.containers[].image"),
		"Algorithm.spec.lifecycle.hooks[].url":                                              to("Hook.spec.forProvider.url"),
		"Algorithm.spec.metrics.path":                                                       to("Service.metadata.annotations.prometheus.io/path", "ServiceMonitor.spec.endpoints[].path"),
		"Algorithm.spec.metrics.queries[].query":                                            to(inCanary, inChecks, inScaling, queries+"failures", queries+"inFlight", queries+"latency", queries+"requests"),
		"Algorithm.spec.podMetadata.annotations{}":                                          to("Deployment.spec.template.metadata.annotations.example.org/owner"),
		"Algorithm.spec.pod.initContainers[].image":                                         to(inInitImage),
		"Algorithm.spec.pod.containers[].image":                                             to(inInitImage),
		"Algorithm.spec.volumeMounts[].mountPath":                                           to(inMount),
		"Algorithm.spec.volumeMounts[].subPath":                                             to("Deployment.spec.template.spec.containers[].volumeMounts[].subPath"),
		"Algorithm.spec.probes.path":                                                        to("Deployment.spec.template.spec.containers[].readinessProbe.httpGet.path", "Deployment.spec.template.spec.containers[].startupProbe.httpGet.path"),
		"Algorithm.spec.probes.warmUp.body":                                                 to("Deployment.spec.template.metadata.annotations.capstan.dev/warm-up-body"),
		"Algorithm.spec.probes.warmUp.path":                                                 to("Deployment.spec.template.spec.initContainers[].args[]"),
		"Algorithm.spec.resources.deviceRequest.selectors[].cel.expression":                 to("ResourceClaimTemplate.spec.spec.devices.requests[].exactly.selectors[].cel.expression"),
		"Database.spec.backup.verify.assertions[].sql":                                      to("ConfigMap.data.member.json|.backup.verify.assertions[].sql"),
		"Database.spec.consumers[].credentials.id":                                          to(inRotation),
		"Database.spec.credentials.id":                                                      to(inRotation),
		"Database.spec.from.dump.databases[].path":                                          to("ConfigMap.data.member.json|.dumps.databases[].path"),
		"Database.spec.from.mask[].sql":                                                     to("ConfigMap.data.member.json|.from.mask.statements[].sql"),
		"Database.spec.from.server.databases[].source":                                      to("ConfigMap.data.member.json|.import.databases[].source"),
		"Database.spec.maintenance.hooks.after[].http.url":                                  later,
		"Database.spec.maintenance.hooks.after[].sql.statement":                             later,
		"Database.spec.maintenance.hooks.before[].http.url":                                 to(inJobVariable),
		"Database.spec.maintenance.hooks.before[].sql.statement":                            to(inJobVariable),
		"Database.spec.maintenance.hooks.onSignal[].http.url":                               to(inJobVariable),
		"Database.spec.maintenance.hooks.onSignal[].sql.statement":                          to(inJobVariable),
		"Database.spec.monitoring.queries[].help":                                           to("ConfigMap.data.member.json|.queries[].help"),
		"Database.spec.monitoring.queries[].sql":                                            to("ConfigMap.data.member.json|.queries[].sql"),
		"Database.spec.podMetadata.annotations{}":                                           {nowhere: "It goes to the pods of members, as if the author created them, once the Database has an identity. Keys of Capstan are refused."},
		"Database.spec.switchover.to":                                                       {nowhere: "It is compared with the names of members."},
		"Pipeline.spec.args[]":                                                              to(inCronJobArgs, inTaskPlan+".args[]", inFlinkPlan+".args[]"),
		"Pipeline.spec.command[]":                                                           to(inJobArgs),
		"Pipeline.spec.config{}":                                                            to("ConfigMap.data.rules.yaml"),
		"Pipeline.spec.env[].value":                                                         to(inJobVariable),
		"Pipeline.spec.flink.conf{}":                                                        to(inTaskPlan+".config.state.backend.type", inFlinkPlan+".config.state.backend.type"),
		"Pipeline.spec.flink.taskManagerResources.deviceRequest.deviceClassName":            {refused: noClaims},
		"Pipeline.spec.flink.taskManagerResources.deviceRequest.selectors[].cel.expression": {refused: noClaims},
		"Pipeline.spec.image":                                                               to("Job.spec.template.spec.containers[].image"),
		"Pipeline.spec.lineage.inputs[].name":                                               to(inLineage + "inputs[].name"),
		"Pipeline.spec.lineage.inputs[].namespace":                                          to(inLineage + "inputs[].namespace"),
		"Pipeline.spec.lineage.outputs[].name":                                              to(inLineage + "outputs[].name"),
		"Pipeline.spec.lineage.outputs[].namespace":                                         to(inLineage + "outputs[].namespace"),
		"Pipeline.spec.metrics.path":                                                        to("PodMonitor.spec.podMetricsEndpoints[].path"),
		"Pipeline.spec.pod.volumes[]{any}":                                                  {nowhere: "Volumes are checked as a whole, as for Algorithms: TestOverlayRefused and TestOverlaySettings in function/algorithm."},
		"Pipeline.spec.podMetadata.annotations{}":                                           to("Job.spec.template.metadata.annotations.example.org/owner"),
		"Pipeline.spec.resources.deviceRequest.selectors[].cel.expression":                  to("ResourceClaimTemplate.spec.spec.devices.requests[].exactly.selectors[].cel.expression"),
		"Pipeline.spec.retry.rules[].when.pattern":                                          to(inPodPlan + ".retry.rules[].pattern"),
		"Pipeline.spec.run.args[]":                                                          to(inJobArgs),
		"Pipeline.spec.spark.conf{}":                                                        to("CronJob.spec.jobTemplate.spec.template.metadata.annotations.capstan.dev/plan|.roles[].main.command[]"),
		"Pipeline.spec.volumeMounts[].mountPath":                                            to(inJobMount),
		"Pipeline.spec.volumeMounts[].subPath":                                              to(inJobSubPath),
		"Preview.spec.algorithm.args[]":                                                     to("Algorithm.spec.args[]"),
		"Preview.spec.algorithm.env[].value":                                                to("Algorithm.spec.env[].value"),
		"Preview.spec.algorithm.image":                                                      to("Algorithm.spec.image"),
		"Database.spec.workloadIdentity.roleArn":                                            to(inMember, inBackup, inInputs),
		"Preview.spec.database.mask.statements[].sql":                                       to("Database.spec.from.mask[].sql"),
		"Preview.spec.owner":                                                                {nowhere: "It is shown in a column."},
		"Training.spec.args[]":                                                              to(inJobArgs),
		"Training.spec.command[]":                                                           to(inJobArgs),
		"Training.spec.checkpoint.complete":                                                 to(inPlan + ".checkpoints.complete"),
		"Training.spec.checkpoint.path":                                                     to(inPlan+".checkpoints.dir", inJobMount),
		"Training.spec.checkpoint.subPath":                                                  to(inJobSubPath),
		"Training.spec.config{}":                                                            to("ConfigMap.data.rules.yaml"),
		"Training.spec.env[].value":                                                         to(inJobVariable),
		"Training.spec.image":                                                               to("Job.spec.template.spec.containers[].image"),
		"Training.spec.lineage.inputs[].name":                                               to(inLineage + "inputs[].name"),
		"Training.spec.lineage.inputs[].namespace":                                          to(inLineage + "inputs[].namespace"),
		"Training.spec.lineage.outputs[].name":                                              to(inLineage + "outputs[].name"),
		"Training.spec.lineage.outputs[].namespace":                                         to(inLineage + "outputs[].namespace"),
		"Training.spec.metrics.path":                                                        to("PodMonitor.spec.podMetricsEndpoints[].path"),
		"Training.spec.onSuccess.register.model":                                            to("ModelAlias.spec.forProvider.model", "ModelVersion.spec.forProvider.model"),
		"Training.spec.onSuccess.register.source":                                           to("ModelVersion.spec.forProvider.source"),
		"Training.spec.pod.volumes[]{any}":                                                  {nowhere: "Volumes are checked as a whole, as for Algorithms: TestOverlayRefused and TestOverlaySettings in function/algorithm."},
		"Training.spec.podMetadata.annotations{}":                                           to("Job.spec.template.metadata.annotations.example.org/owner"),
		"Training.spec.resources.deviceRequest.selectors[].cel.expression":                  to("ResourceClaimTemplate.spec.spec.devices.requests[].exactly.selectors[].cel.expression"),
		"Training.spec.volumeMounts[].mountPath":                                            to(inJobMount),
		"Training.spec.volumeMounts[].subPath":                                              to(inJobSubPath),
		"Training.spec.watch.faults[].pattern":                                              to(inPlan + ".watch.faults[].pattern"),
		"Training.spec.watch.progress":                                                      to(inPlan + ".watch.progress"),
		"Experiment.spec.armB.env[].value":                                                  to(inVariable, inPinned),
		"Experiment.spec.armB.image":                                                        to(inImage, inPinnedImage),
		"Experiment.spec.metric.of":                                                         to("Analysis.spec.forProvider.metrics.canary.experiment.of"),
		"Experiment.spec.metric.query":                                                      to("Analysis.spec.forProvider.metrics.canary.experiment.events"),
	}
}

// A meaning of a text in a place of composed objects.
type meaning struct {
	// harmless says why the text of one author harms nobody else there.
	harmless string

	// check that a text is one text of its language.
	check func(string) error

	// expands reports whether the kubelet expands $(NAME) there. $$ is a $.
	expands bool
}

// verify that a text has what an author wrote, and is one text of its language.
func (m meaning) verify(text, written string) error {
	if m.harmless == "" {
		return errors.New("nothing says what a text means there")
	}
	if m.expands {
		text = strings.ReplaceAll(text, "$$", "$")
	}
	if !strings.Contains(text, written) {
		return fmt.Errorf("it is not as it was written: %q", text)
	}
	if m.check != nil {
		return m.check(text)
	}
	return nil
}

// Texts in the plan of a Flink stream, which is one text of JSON.
var (
	flinkArgument = meaning{harmless: "It is one argument of the author's own job, and the companion starts no shell."}
	flinkSetting  = meaning{harmless: "It is one value of the author's own Flink, which gets it as one argument. Options of Capstan are refused."}
)

// meanings of texts by place.
func meanings(t *testing.T) map[string]meaning {
	t.Helper()
	own := meaning{harmless: "It is for the author's own container."}
	image := meaning{harmless: "The kubelet pulls it with the Secrets of the author's namespace, or reports that it cannot."}
	const copied = "It is as if the author created the Algorithm, whose texts this test attacks."
	dataset := meaning{harmless: "It is as if the author created the Lineage: one text of JSON in an event, about the author's own job."}
	probe := meaning{harmless: "A request goes to the author's own pod.", check: path}
	all := map[string]meaning{
		inArgs:        {harmless: own.harmless, expands: true},
		inImage:       image,
		inInitImage:   image,
		inMount:       {harmless: "It is a folder in the author's own container. The runtime resolves it within the container's file system."},
		inVariable:    {harmless: own.harmless, expands: true},
		inPinned:      {harmless: own.harmless, expands: true},
		inPinnedImage: image,
		inJobVariable: {expands: true, harmless: "A statement runs in the author's own Database with the rights of an owner, a URL is called from a pod of the author's namespace."},
		inRotation:    {harmless: "It is compared with what it was."},
		inMember:      {expands: true, harmless: "It is the name of a role, which AWS gives to accounts that the role trusts."},
		inBackup:      {expands: true, harmless: "It is the name of a role, which AWS gives to accounts that the role trusts."},
		inInputs:      {harmless: "It is compared with what it was. In the annotation it is one text of JSON."},
		"ConfigMap.data.member.json|.dumps.databases[].path":                     {harmless: "It is the key of an object of the author's own bucket. In the file it is one text of JSON, and members escape it in requests."},
		"ConfigMap.data.member.json|.import.databases[].source":                  {harmless: "It is the name of a database of the author's own source. In the file it is one text of JSON, and members quote it."},
		"Database.spec.from.mask[].sql":                                          {harmless: "It is a field of the same name, with the same schema, of another object of the author's namespace."},
		"ConfigMap.data.member.json|.from.mask.statements[].sql":                 {harmless: "It runs in a copy that no client reaches, with the rights of the owner of its database. In the file it is one text of JSON."},
		"ConfigMap.data.member.json|.queries[].help":                             {harmless: "The exporter escapes it. In the file it is one text of JSON."},
		"ConfigMap.data.member.json|.queries[].sql":                              {harmless: "It runs as a role with few rights, in a read-only session of its own. In the file it is one text of JSON."},
		"ConfigMap.data.member.json|.backup.verify.assertions[].sql":             {harmless: "It runs in a copy of the author's own Database. In the file it is one text of JSON."},
		"ConfigMap.data.rules.yaml":                                              own,
		"Deployment.spec.template.metadata.annotations.capstan.dev/warm-up-body": {harmless: "It is the body of a request to the author's own pod, which a file has as it is."},
		"Deployment.spec.template.metadata.annotations.example.org/owner":        {harmless: "It is as if the author created the pod. Keys of Capstan are refused."},
		"Deployment.spec.template.spec.containers[].command[]":                   {harmless: own.harmless, expands: true},
		"Deployment.spec.template.spec.containers[].readinessProbe.httpGet.path": probe,
		"Deployment.spec.template.spec.containers[].startupProbe.httpGet.path":   probe,
		"Deployment.spec.template.spec.containers[].volumeMounts[].subPath":      {harmless: "The kubelet resolves it within the volume."},
		"Deployment.spec.template.spec.initContainers[].args[]":                  {harmless: probe.harmless, check: warmUp, expands: true},
		"Job.spec.template.spec.containers[].image":                              image,
		"ResourceClaimTemplate.spec.spec.devices.requests[].exactly.selectors[].cel.expression": {
			harmless: "It selects among the devices of a class, with the class's own selectors beside it. The API server compiles it.",
		},
		"Algorithm.spec.args[]":                    {harmless: copied},
		"Algorithm.spec.env[].value":               {harmless: copied},
		"Algorithm.spec.image":                     {harmless: copied},
		inJobArgs:                                  {harmless: own.harmless, expands: true},
		inCronJobArgs:                              {harmless: own.harmless, expands: true},
		inTaskPlan + ".args[]":                     flinkArgument,
		inFlinkPlan + ".args[]":                    flinkArgument,
		inTaskPlan + ".config.state.backend.type":  flinkSetting,
		inFlinkPlan + ".config.state.backend.type": flinkSetting,
		inPodPlan + ".retry.rules[].pattern":       {harmless: "It is a regular expression without backtracking for the output of the author's own program."},
		"CronJob.spec.jobTemplate.spec.template.metadata.annotations.capstan.dev/plan|.roles[].main.command[]": {
			harmless: "It is one argument of the author's own program. The companion does not expand it, because the dollar is doubled.", expands: true,
		},
		inLineage + "inputs[].name":                                dataset,
		inLineage + "inputs[].namespace":                           dataset,
		inLineage + "outputs[].name":                               dataset,
		inLineage + "outputs[].namespace":                          dataset,
		inJobMount:                                                 {harmless: "It is a folder in the author's own container. The runtime resolves it within the container's file system."},
		inJobSubPath:                                               {harmless: "The kubelet resolves it within the volume."},
		inPlan + ".checkpoints.complete":                           {harmless: "It is compared with names below the folder of the author's own checkpoints. In the file it is one text of JSON."},
		inPlan + ".checkpoints.dir":                                {harmless: "It is a folder in the author's own container. In the file it is one text of JSON."},
		inPlan + ".watch.faults[].pattern":                         {harmless: "It is a regular expression without backtracking for the output of the author's own program."},
		inPlan + ".watch.progress":                                 {harmless: "It is a regular expression without backtracking for the output of the author's own program."},
		"Job.spec.template.metadata.annotations.example.org/owner": {harmless: "It is as if the author created the pod. Keys of Capstan are refused."},
		"ModelAlias.spec.forProvider.model":                        {harmless: "It is as if the author created the ModelAlias, whose texts test/provider attacks."},
		"ModelVersion.spec.forProvider.model":                      {harmless: "It is as if the author created the ModelVersion, whose texts test/provider attacks."},
		"ModelVersion.spec.forProvider.source":                     {harmless: "It is as if the author created the ModelVersion, whose texts test/provider attacks."},
		"PodMonitor.spec.podMetricsEndpoints[].path":               probe,
		"Service.metadata.annotations.prometheus.io/path":          probe,
		"ServiceMonitor.spec.endpoints[].path":                     probe,
	}
	// What the provider is told has attacks of its own.
	attacked := string(bytesOf(t, "../test/provider/tenancy_test.go"))
	for _, place := range []string{
		inChecks, inCanary, "Analysis.spec.forProvider.metrics.canary.experiment.of", "Analysis.spec.forProvider.metrics.canary.experiment.events",
		"Analysis.spec.forProvider.metrics.queries.failures", "Analysis.spec.forProvider.metrics.queries.inFlight",
		"Analysis.spec.forProvider.metrics.queries.latency", "Analysis.spec.forProvider.metrics.queries.requests",
		"Analysis.spec.forProvider.metrics.scaling.query", "Hook.spec.forProvider.url",
	} {
		_, entry, _ := strings.Cut(attacked, fmt.Sprintf("%q:", place))
		if !strings.HasPrefix(strings.TrimSpace(entry), "{attack:") {
			t.Errorf("test/provider has no attack for %s", place)
		}
		all[place] = meaning{harmless: "The provider narrows queries to the author's Algorithm, and connects to no address of others."}
	}
	return all
}

// path of a URL, which Prometheus and the kubelet append to the address of a pod.
func path(text string) error { return ofHost("http://192.0.2.1:8080", "http://192.0.2.1:8080"+text) }

// warmUp is an argument of the companion.
func warmUp(text string) error {
	return ofHost("http://127.0.0.1:8080", strings.TrimPrefix(text, "--url="))
}

func ofHost(host, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if got := u.Scheme + "://" + u.Host; got != host || u.User != nil {
		return fmt.Errorf("%s leads to %s", text, got)
	}
	return nil
}
