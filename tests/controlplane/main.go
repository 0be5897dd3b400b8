// One binary that is a whole control plane for the tests: it runs the program whose name it is called by.
//
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok share most of their code, so one
// binary builds in half the time of six and takes a fifth of the space.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubectl":
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	case "kwok":
		if err := runKwok(); err != nil {
			fmt.Fprintln(os.Stderr, "kwok:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "controlplane: no program %q in here; link it as etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl or kwok\n", name)
		os.Exit(2)
	}
}

// runKwok is apart from the others: it reads its configuration before its command exists, and trips over the global
// --version flag that they share, so it gets a clean set of global flags.
func runKwok() error {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	if err := offerStagesOnStdin(); err != nil {
		return err
	}
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

// offerStagesOnStdin makes `kwok --config -` play the stages that kwok ships: nodes become Ready and renew their Leases,
// pods run, Jobs' pods complete, deleted pods go. They fit into a pipe's buffer.
func offerStagesOnStdin() error {
	stages := []string{nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	os.Stdin = reader
	if _, err := writer.WriteString(strings.Join(stages, "\n---\n")); err != nil {
		return err
	}
	return writer.Close()
}
