"""Registry entries: YAML files that describe deployments of differential privacy.

The fields are those of the public registry of OpenDP (schema of July 2026): for each section the
names that are allowed, with their types or words.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, told

Entry = dict[str, Any]
ANY, NAMES = (object,), "names"
# Most bytes of an entry.
LONGEST = 1_000_000
# Most signs of a number.
DIGITS = 200
# Most levels of parts in parts.
DEEPEST = 20
STATUS = (
    *("Converted", "Draft", "Pending", "Changes Required", "Approved"),
    *("Approved (Update Requested)", "Approved (Pending)"),
)
PARAMETERS: dict[str, Any] = {
    "epsilon": (int, float),
    "delta": (int, float, str),
    "rho": (int, float),
}
# A type, words that are allowed, a list of names, or fields of its own.
SECTIONS: dict[str, dict[str, Any]] = {
    "basic": {
        **dict.fromkeys(("name", "description", "intended_use", "data_product_region"), (str,)),
        "data_curators": NAMES,
        "publication_date": (str,),
        "data_product_type": [
            *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
            *("Interactive API", "SQL queries"),
        ],
        "data_product_sector": [
            *("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
        ],
    },
    "dp_variant": {
        "variant_name": [
            *("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
        ],
        **dict.fromkeys(("data_domain", "unprotected_quantities"), (str,)),
    },
    "privacy_loss": {
        **dict.fromkeys(("privacy_unit", "privacy_unit_details"), (str,)),
        "privacy_parameters": PARAMETERS,
        "privacy_parameters_details": ANY,
    },
    "deployment_model": {
        "model_name": ["Local", "Central", "Shuffle", "Federated", "Varies"],
        "release_type": ["One release", "Many releases"],
        "data_source_type": ["Static", "Dynamic"],
        "access_type": ["Interactive", "Non-interactive"],
        **dict.fromkeys(("model_name_details", "actors", "release_type_details"), (str,)),
        "data_source_type_details": ANY,
        "access_type_details": (str,),
    },
    "accounting": dict.fromkeys(("post_processing", "composition"), (str,)),
    "implementation": dict.fromkeys(
        ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"), (str,)
    ),
    "administrative": {
        **dict.fromkeys(("sources", "notes"), (str,)),
        "registry_authors": NAMES,
    },
}
REQUIRED = {
    "basic": (
        *("name", "data_curators", "description", "intended_use", "data_product_type"),
        *("data_product_region", "publication_date"),
    ),
    "administrative": ("registry_authors",),
}


def read(path: Path) -> Entry:
    """An entry from a file; fields that are empty are left out."""
    try:
        import yaml
    except ImportError:
        raise DpradError("registry files need PyYAML: pip install 'dprad[atlas]'.") from None
    if not path.is_file() or path.stat().st_size > LONGEST:
        raise DpradError(f"{path.name} is not a registry entry: it is not a file, or too long.")
    try:
        text = path.read_text(encoding="utf-8")
        _simple(yaml, text, path.name)
        entry = _filled(yaml.safe_load(text))
        json.dumps(entry, ensure_ascii=False, default=str).encode()  # or it cannot be written
    except DpradError:
        raise
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        # the last four are raised for dates, numbers and words that do not fit their tags
        raise DpradError(f"{path.name} is not YAML: {told(error)}.") from None
    wrong = check(entry)
    if wrong:
        raise DpradError(f"{path.name} is not a registry entry: {'; '.join(wrong)}.")
    return entry  # type: ignore[no-any-return]


def _simple(yaml: Any, text: str, name: str) -> None:
    """Refuse what takes long to read: long numbers, parts within parts or repeated by reference."""
    depth = 0
    for event in yaml.parse(text):
        long = isinstance(event, yaml.ScalarEvent) and len(event.value) > DIGITS
        number = long and event.implicit[0] and event.value[0] in "+-.0123456789"
        if number or (long and event.tag is not None):
            raise DpradError(f"{name} is not a registry entry: it has a number that is too long.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            raise DpradError(
                f"{name} is not a registry entry: it is nested too deeply, or repeats parts by "
                "reference."
            )


def _filled(value: Any) -> Any:
    """Without fields that are empty, with dates as text."""
    if isinstance(value, dict):
        return {k: _filled(v) for k, v in value.items() if v is not None}
    return value.isoformat() if isinstance(value, date) else value


def write(entry: Entry) -> str:
    """An entry as the text of a file."""
    try:
        import yaml
    except ImportError:
        raise DpradError("registry files need PyYAML: pip install 'dprad[atlas]'.") from None
    wrong = check(entry)
    if wrong:
        raise DpradError(f"this is not a registry entry: {'; '.join(wrong)}.")
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def check(entry: Any) -> list[str]:
    """What is wrong with an entry: fields that are missing, not allowed, or of another type."""
    top = {"url_slug": (str,), "status": list(STATUS), "tier": [1, 2, 3], "deployment": SECTIONS}
    wrong = _fields(entry, top, "", tuple(top))
    if wrong:
        return wrong
    made = entry["deployment"]
    missing = [] if "basic" in made else ["deployment.basic is missing"]
    for name, needed in REQUIRED.items():
        missing += [
            f"{name}.{k} is missing" for k in needed if name in made and k not in made[name]
        ]
    return missing


def _fields(value: Any, rule: Any, where: str, needed: tuple[str, ...] = ()) -> list[str]:
    """One rule, and those within it."""
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            return [f"{where or 'the file'} must have fields"]
        dot = f"{where}." if where else ""
        wrong = [f"{dot}{k} is missing" for k in needed if k not in value]
        wrong += [f"{dot}{k} is not allowed" for k in value if k not in rule]
        for key, inner in rule.items():
            wrong += _fields(value[key], inner, f"{dot}{key}") if key in value else []
        return wrong
    if rule == NAMES:
        fine = isinstance(value, list) and value and all(isinstance(v, str) for v in value)
        return [] if fine else [f"{where} must be a list of names"]
    if isinstance(rule, list):
        return [] if value in rule else [f"{where} must be one of {', '.join(map(str, rule))}"]
    fine = isinstance(value, rule) and (rule is ANY or not isinstance(value, bool))
    return [] if fine else [f"{where} has the wrong type"]
