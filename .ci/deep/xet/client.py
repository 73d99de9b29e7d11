"""huggingface_hub as people use it: client.py download REPO FOLDER, or client.py upload FOLDER REPO."""

import sys

from huggingface_hub import HfApi, snapshot_download

what, one, two = sys.argv[1:]
if what == "download":
    snapshot_download(one, local_dir=two)
else:
    HfApi().create_repo(two)
    HfApi().upload_folder(repo_id=two, folder_path=one, ignore_patterns=[".cache/**"])
