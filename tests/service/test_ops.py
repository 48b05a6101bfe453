"""Dashboard, alerts and manifests: valid, and about metrics that a real service exports."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from clients.shards import Shard
from service.settings import Settings

OPS = Path(__file__).parents[2] / "ops"
ALERTS = OPS / "prometheus" / "alerts.yml"
DASHBOARD = OPS / "grafana" / "dashboards" / "parsebank.json"
MANIFEST = OPS / "kubernetes" / "parsebank.yaml"
ARRAY_JOB = OPS / "kubernetes" / "backfill.yaml"
ARRAY_SCRIPT = OPS / "slurm" / "backfill.sbatch"

BY_PROMETHEUS = {"job", "instance", "le"}
"""Labels that Prometheus adds, and the bounds of a histogram."""


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def panels() -> list[dict[str, Any]]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in read_yaml(ALERTS)["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Every query with the name of its alert or panel."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.asyncio(loop_scope="module")
async def test_every_query_is_about_metrics_and_labels_of_the_service(client) -> None:
    await client.post("/parse", json={"text": "Counted."})
    answer = await client.get("/metrics")
    samples = [
        sample
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    ]
    labels: dict[str, set[str]] = {}
    for sample in samples:
        labels.setdefault(sample.name, set()).update(sample.labels)
    asked = 0
    for name, query in expressions():
        metrics = re.findall(r"\b(parsebank_\w+)\b(?:\{([^}]*)\})?", query)
        assert metrics or query.startswith(("up{", "sum(up{")), name
        known = set(BY_PROMETHEUS)
        for metric, selector in metrics:
            assert metric in labels, f"{name}: {metric}"
            assert set(re.findall(r"(\w+)(?:=|!=)", selector)) <= labels[metric] | BY_PROMETHEUS
            known |= labels[metric]
            asked += 1
        grouped = {label for by in re.findall(r"by \(([^)]*)\)", query) for label in by.split(", ")}
        assert grouped <= known, name
    assert asked > 30


@pytest.mark.asyncio(loop_scope="module")
async def test_the_dashboard_shows_every_metric(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    families = {
        family.name
        for family in text_string_to_metric_families(answer.text)
        if family.name.startswith("parsebank_")
    }
    shown = " ".join(target["expr"] for panel in panels() for target in panel["targets"])
    assert [name for name in sorted(families) if name not in shown] == []


def test_alerts_name_reasons_and_states_that_the_guide_names() -> None:
    guide = (OPS.parent / "docs" / "operate.md").read_text(encoding="utf-8")
    values = {
        value
        for _, query in expressions()
        for value in re.findall(r'(?:reason|state|result)="(\w+)"', query)
    }
    assert values >= {"died", "failed", "waiting", "running"}
    assert [value for value in sorted(values) if f"`{value}`" not in guide] == []


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "action"}


def test_panels_do_not_overlap_and_use_the_provisioned_source() -> None:
    (source,) = read_yaml(OPS / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {source["uid"]}


def test_containers_find_each_other() -> None:
    compose = read_yaml(OPS.parent / "docker-compose.yml")["services"]
    (source,) = read_yaml(OPS / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = read_yaml(OPS / "grafana/provisioning/dashboards/parsebank.yml")["providers"]
    folder = provider["options"]["path"]
    assert f"./ops/grafana/dashboards:{folder}:ro" in compose["grafana"]["volumes"]
    config = read_yaml(OPS / "prometheus" / "prometheus.yml")
    assert config["rule_files"] == ["/etc/prometheus/alerts.yml"]
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "parsebank"
    assert job["static_configs"] == [{"targets": ["service:8000"]}]
    assert {"service", "prometheus"} <= compose.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("test", "rules", "alerts-test.yml"),
    ],
    ids=" ".join,
)
def test_prometheus_accepts_the_files(arguments: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (Debian's package prometheus)")
    done = subprocess.run(
        [promtool, *arguments], cwd=ALERTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried() -> None:
    tried = (ALERTS.parent / "alerts-test.yml").read_text(encoding="utf-8")
    assert [rule["alert"] for rule in rules() if f'"{rule["alert"]}"' not in tried] == []


@pytest.mark.parametrize(
    ("path", "kinds"),
    [(MANIFEST, ["ConfigMap", "Service", "StatefulSet"]), (ARRAY_JOB, ["Job"])],
    ids=lambda given: given.stem if isinstance(given, Path) else "",
)
def test_the_manifests_follow_the_schemas_of_kubernetes(path: Path, kinds: list[str]) -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    assert [document["kind"] for document in documents] == kinds
    for document in documents:
        checker.validate(document, checker.latest_version(), strict=True)


@pytest.mark.parametrize("path", [MANIFEST, ARRAY_JOB], ids=lambda path: path.stem)
def test_no_pod_has_the_variables_of_service_links(path: Path) -> None:
    documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    pods = [each["spec"]["template"] for each in documents if "template" in each.get("spec", {})]
    assert [pod["spec"]["enableServiceLinks"] for pod in pods] == [False]


def test_the_manifest_names_what_it_defines(monkeypatch: pytest.MonkeyPatch) -> None:
    config, service, stateful = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    pod = stateful["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    claims = [claim["metadata"] for claim in stateful["spec"]["volumeClaimTemplates"]]
    defined = {volume["name"] for volume in (*pod["spec"]["volumes"], *claims)}
    assert {mount["name"] for mount in container["volumeMounts"]} == defined
    for name, value in config["data"].items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {settings.store, str(settings.models_dir)} <= mounts
    assert pod["spec"]["terminationGracePeriodSeconds"] == settings.shutdown_seconds + 30


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Runs a command, and returns the arguments that it gives to ``parsebank``."""
    stub = tmp_path / "bin" / "parsebank"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")

    def run(*command: str, **environment: str) -> list[str]:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return run


def test_the_tasks_of_the_slurm_script_are_all_shards(said: Callable[..., list[str]]) -> None:
    script = ARRAY_SCRIPT.read_text(encoding="utf-8")
    (count,) = re.findall(r"--array=1-(\d+)", script)
    given = ("sample", "--store", "/with space/parses")
    for task in ("1", count):
        shard = ("backfill", *given, "--shard", f"{task}/{count}")
        assert said("bash", str(ARRAY_SCRIPT), *given, SLURM_ARRAY_TASK_ID=task) == [*shard]


def test_the_pods_of_the_job_are_all_shards(said: Callable[..., list[str]]) -> None:
    job = read_yaml(ARRAY_JOB)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in job["template"]["spec"]["volumes"]}
    for index in (0, job["completions"] - 1):
        command = [*container["command"], *container["args"]]
        found = said(*command, **environment, JOB_COMPLETION_INDEX=str(index))
        shard = f"{index + 1}/{job['completions']}"
        assert found == ["backfill", *container["args"], "--shard", shard]
        assert Shard.read(found[-1])
